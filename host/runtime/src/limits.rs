//! What a connector may use and what it may return.
//!
//! [`Limits`] can be set by the operator. The constants cannot: they are part of what the rest of the host is
//! built for (a page fits into one transaction, a cursor into one row). Every one of them has a test with a
//! connector that breaks it.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Limits of one call, of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of linear memory that one call may use, all its memories together. A Rust connector starts at about
    /// 1 MiB. From [`MIN_MEMORY`] to [`MAX_MEMORY`]. Default 64 MiB.
    pub memory: usize,
    /// Processor time of one call. Default 500 ms; reading a page of 100 records takes well under one.
    pub call: Duration,
    /// Processor time of `describe`. Default 200 ms.
    pub describe: Duration,
    /// Bytes that the result of one call may hold. Default 16 MiB: a page whose records are slices of the answer
    /// needs a few KiB.
    pub returned: usize,
    /// Bytes of a connector's file. Default 32 MiB: one in Rust has about 300 KiB, one in JavaScript 2 MiB, and one in Python
    /// brings its interpreter along, 18 MiB.
    pub file: usize,
    /// Log lines per second, over all its calls; twice as many in one call, eight times as many after a pause. Default 32.
    pub log: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 64 << 20,
            call: Duration::from_millis(500),
            describe: Duration::from_millis(200),
            returned: 16 << 20,
            file: 32 << 20,
            log: 32,
        }
    }
}

/// Below this no usual toolchain's output even starts.
pub const MIN_MEMORY: usize = 4 << 20;
/// The most memory that a slot of the pool can hold.
pub const MAX_MEMORY: usize = 256 << 20;
/// A call of so few ms would be blamed for the machine's own delays; one of so many would hold its worker for good.
pub const CALL_MS: RangeInclusive<u64> = 50..=60_000;
/// Below this no result fits; above it the results of a few calls would fill the memory.
pub const RETURNED: RangeInclusive<usize> = 64 << 10..=64 << 20;
/// No connector is smaller or larger than this.
pub const FILE: RangeInclusive<usize> = 64 << 10..=256 << 20;
/// More lines a second than anybody can read.
pub const LOG: RangeInclusive<u32> = 0..=10_000;

impl Limits {
    /// What is out of range, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(MIN_MEMORY..=MAX_MEMORY).contains(&self.memory) {
            return Err(format!(
                "a connector's memory must lie between {} and {} MiB, not {} bytes",
                MIN_MEMORY >> 20,
                MAX_MEMORY >> 20,
                self.memory
            ));
        }
        for (what, time) in [("call", self.call), ("describe", self.describe)] {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            if !CALL_MS.contains(&ms) {
                return Err(format!(
                    "a connector's time for a {what} must lie between {} and {} ms, not {ms}",
                    CALL_MS.start(),
                    CALL_MS.end()
                ));
            }
        }
        let within = RETURNED.contains(&self.returned)
            && FILE.contains(&self.file)
            && LOG.contains(&self.log);
        if !within {
            return Err(format!("a connector's limit is out of range: {self:?}"));
        }
        Ok(())
    }
}

/// A busy machine slows a call down without the connector's fault, so time is counted on the processor. This
/// many times the limit, by the wall clock, ends it all the same.
pub(crate) const WALL_PER_CPU: u32 = 10;

/// A component made from a core module has three core instances; one in JavaScript has 13, and one in Python, which is
/// linked from some twenty libraries, about 40.
pub(crate) const CORE_INSTANCES: u32 = 64;
/// One is usual; an adapter may bring a second, and what stands in for WASI a third.
pub(crate) const MEMORIES: u32 = 4;
/// The connector's own, those of the component's shims, and some to spare.
pub(crate) const TABLES: u32 = 8;
/// A large Rust program has a few hundred functions in its table.
pub(crate) const TABLE_ELEMENTS: usize = 10_000;

/// Largest page: GitHub sends 100, Algolia 1,000; an API without paging sends all that it has.
pub const RECORDS: usize = 100_000;
/// Longest id of a record; the store's keys are built from it.
pub const RECORD_ID: usize = 1 << 10;
/// Largest record: vendors that deliver more have a file behind a link.
pub const RECORD: usize = 1 << 20;
/// Largest cursor or step: both are rows that are written with every page.
pub const CURSOR: usize = 64 << 10;
/// Most ways to go on after one page.
pub const STEPS: usize = 1_000;
/// Most slices of one stream.
pub const PARTITIONS: usize = 10_000;
/// Most headers of one request.
pub const HEADERS: usize = 64;
/// All header names and values of one request together; servers refuse more than 8 to 16 KiB.
pub const HEADER_BYTES: usize = 16 << 10;
/// The path or link of one request, and all its query parameters together.
pub const TARGET: usize = 16 << 10;
/// Most query parameters of one request.
pub const QUERY: usize = 256;
/// Largest body of a request: a GraphQL query has a few KiB.
pub const REQUEST_BODY: usize = 1 << 20;
/// Longest text for a person: a fault's message, a log line. Longer ones are cut.
pub const MESSAGE: usize = 1 << 10;
/// Longest name: of a connector, a stream, an origin, a bucket, a code.
pub const NAME: usize = 256;
/// Most buckets that one answer may tell of.
pub const LIMITS: usize = 64;
/// Most entries of an `extra` list, each of at most [`MESSAGE`] bytes.
pub const EXTRA: usize = 64;
/// Most streams of one connector.
pub const STREAMS: usize = 1_000;
/// Most origins of one connector.
pub const ORIGINS: usize = 64;
/// Largest JSON Schema.
pub const SCHEMA: usize = 256 << 10;

/// Of a second's log lines, so many may be written in one call.
pub(crate) const SECONDS_PER_CALL: u32 = 2;
/// Of a second's log lines, so many may be written at once after a pause.
pub(crate) const SECONDS_BURST: u32 = 8;
