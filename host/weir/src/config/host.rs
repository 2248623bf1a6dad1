//! `[host]`: where things lie and what the host may use.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use toml::de::DeValue;

use super::reader::{Entry, Report, Section};
use crate::store::PollsKept;

/// `[host]`, every key optional.
///
/// ```toml
/// [host]
/// data = "data"
/// connectors = "connectors"
/// timeout = { connect = "10s", idle = "30s", total = "60s" }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// `data`: the directory of the store, the compile cache and the control socket. Default `data`.
    pub data: PathBuf,
    /// `connectors`: the directory of the `.wasm` files. Default `connectors`.
    pub connectors: PathBuf,
    /// `concurrency`: HTTP calls in flight at once, over all connections, 1 to 10000. Default 64. More costs memory: up
    /// to `max_body` each.
    pub concurrency: usize,
    /// `workers`: threads that run connectors, 1 to 256. Default: one per processor.
    pub workers: usize,
    /// `outbox`: bytes of records that may wait for the sinks. Default `"256MiB"`. Above it, polling slows down and says
    /// why.
    pub outbox: u64,
    /// `timeout`: what one call may take.
    pub timeout: Timeouts,
    /// `max_body`: decoded bytes of one answer, `"64KiB"` to `"48MiB"`. Default `"16MiB"`. An answer is handed to the
    /// connector whole, whose own memory is limited to 64 MiB.
    pub max_body: usize,
    /// `store_cache`: bytes of the store kept in memory, at least `"1MiB"`. Default `"16MiB"`.
    pub store_cache: usize,
    /// `poll_log`: how long the rows of past polls are kept (`"30d"`), or `{ keep, per_unit, in_all }`, the last two in
    /// rows. Default `{ keep = "30d", per_unit = 200, in_all = 1000000 }`.
    pub poll_log: PollsKept,
    /// `copies`: how often the store's file is copied to `copies` in the data directory, and how many copies are kept, 1 to
    /// 100; or `false`. Default `{ every = "1d", keep = 3 }`. A copy needs as much room as what the store holds.
    pub copies: Option<CopySettings>,
    /// `metrics`: where `/metrics`, `/healthz` and `/readyz` answer besides the control socket: a loopback address and a
    /// port, `"127.0.0.1:9464"`; any other address only as `{ address = "0.0.0.0:9464", open = true }`. Default: nowhere.
    pub metrics: Option<SocketAddr>,
    /// `key_file`: the key that tokens are sealed with in the store: 64 hexadecimal digits, readable by its owner alone.
    /// Default: `credentials.key` in the data directory. Made when it is first needed.
    pub key_file: Option<PathBuf>,
    /// `user_agent`: what vendors see. Default `weir/<version>`.
    pub user_agent: String,
}

/// `host.copies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySettings {
    /// In ms, at least 1,000.
    pub every: u64,
    /// How many are kept.
    pub keep: usize,
}

impl Default for CopySettings {
    fn default() -> Self {
        CopySettings {
            every: 86_400_000,
            keep: 3,
        }
    }
}

/// `host.timeout`: every call has all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// `connect`: name lookup, TCP and TLS. Default `"10s"`.
    pub connect: Duration,
    /// `idle`: silence in the middle of an answer. Default `"30s"`.
    pub idle: Duration,
    /// `total`: the whole call, redirects included. Default `"60s"`.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(60),
        }
    }
}

/// The least and the most that `max_body` may be: above it, an answer and what a connector makes of it would not fit
/// into the memory that one call may use.
const BODY: (u64, u64) = (64 << 10, 48 << 20);

impl Host {
    /// Where the key is.
    pub fn key_file(&self) -> PathBuf {
        let default = || self.data.join("credentials.key");
        self.key_file.clone().unwrap_or_else(default)
    }

    /// Where the store's file is.
    pub fn store_file(&self) -> PathBuf {
        self.data.join("weir.redb")
    }

    /// Where its copies are.
    pub fn copies_dir(&self) -> PathBuf {
        self.data.join("copies")
    }

    /// The defaults, with paths read from the configuration's folder.
    pub(super) fn default_in(report: &Report<'_>) -> Self {
        Host {
            data: report.path("data"),
            connectors: report.path("connectors"),
            concurrency: 64,
            workers: thread::available_parallelism().map_or(2, |n| n.get().min(256)),
            outbox: 256 << 20,
            timeout: Timeouts::default(),
            max_body: 16 << 20,
            store_cache: 16 << 20,
            poll_log: PollsKept::default(),
            copies: Some(CopySettings::default()),
            metrics: None,
            key_file: None,
            user_agent: concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    pub(super) fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Self {
        let mut host = Host::default_in(report);
        let path_help = "allowed: a path, read from the folder of this file; example: \"data\"";
        if let Some(at) = section.get(report, "data")
            && let Some(path) = at.filled(report, path_help)
        {
            host.data = report.path(path);
        }
        if let Some(at) = section.get(report, "connectors")
            && let Some(path) = at.filled(report, path_help)
        {
            host.connectors = report.path(path);
        }
        if let Some(at) = section.get(report, "concurrency")
            && let Some(calls) = at.number(report, 1..10_001)
        {
            host.concurrency = usize::try_from(calls).unwrap_or(host.concurrency);
        }
        if let Some(at) = section.get(report, "workers")
            && let Some(threads) = at.number(report, 1..257)
        {
            host.workers = usize::try_from(threads).unwrap_or(host.workers);
        }
        if let Some(at) = section.get(report, "outbox")
            && let Some(bytes) = at.size(report)
        {
            host.outbox = bytes;
        }
        if let Some(at) = section.get(report, "max_body")
            && let Some(bytes) = at.size(report)
        {
            if (BODY.0..=BODY.1).contains(&bytes) {
                host.max_body = usize::try_from(bytes).unwrap_or(host.max_body);
            } else {
                report.complain(&at, "is out of range", "allowed: \"64KiB\" to \"48MiB\"");
            }
        }
        if let Some(at) = section.get(report, "store_cache")
            && let Some(bytes) = at.size(report)
        {
            match usize::try_from(bytes) {
                Ok(bytes) if bytes >= 1 << 20 => host.store_cache = bytes,
                _ => report.complain(&at, "is out of range", "allowed: \"1MiB\" and more"),
            }
        }
        if let Some(at) = section.get(report, "poll_log") {
            host.poll_log = poll_log(&at, report);
        }
        if let Some(at) = section.get(report, "copies") {
            host.copies = copies(&at, report);
        }
        if let Some(at) = section.get(report, "metrics") {
            host.metrics = metrics(&at, report);
        }
        if let Some(at) = section.get(report, "key_file")
            && let Some(path) = at.filled(report, path_help)
        {
            host.key_file = Some(report.path(path));
        }
        if let Some(at) = section.get(report, "user_agent") {
            let help = "allowed: printable ASCII; example: \"acme-weir/1 (ops@acme.example)\"";
            match at.filled(report, help) {
                Some(text) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => {
                    text.clone_into(&mut host.user_agent);
                }
                Some(_) => report.complain(&at, "holds characters that no header may hold", help),
                None => {}
            }
        }
        if let Some(at) = section.get(report, "timeout") {
            let help = "example: timeout = { connect = \"10s\", idle = \"30s\", total = \"60s\" }";
            if let Some(section) = at.section(report, help) {
                host.timeout = Timeouts::read(section, report);
                if host.timeout.connect > host.timeout.total {
                    let problem = format!(
                        "connect ({:?}) is longer than total ({:?})",
                        host.timeout.connect, host.timeout.total
                    );
                    report.complain(&at, &problem, help);
                }
            }
        }
        section.finish(report);
        host
    }
}

fn poll_log(at: &Entry<'_>, report: &mut Report<'_>) -> PollsKept {
    let help = "example: poll_log = \"30d\" or poll_log = { keep = \"30d\", per_unit = 200 }";
    let mut kept = PollsKept::default();
    if at.value.is_str() {
        kept.keep = at.duration(report).unwrap_or(kept.keep);
        return kept;
    }
    let Some(mut section) = at.section(report, help) else {
        return kept;
    };
    if let Some(at) = section.get(report, "keep") {
        kept.keep = at.duration(report).unwrap_or(kept.keep);
    }
    if let Some(at) = section.get(report, "per_unit")
        && let Some(rows) = at.number(report, 1..100_001)
    {
        kept.per_unit = u32::try_from(rows).unwrap_or(kept.per_unit);
    }
    if let Some(at) = section.get(report, "in_all")
        && let Some(rows) = at.number(report, 1..1_000_000_001)
    {
        kept.in_all = rows;
    }
    section.finish(report);
    kept
}

fn copies(at: &Entry<'_>, report: &mut Report<'_>) -> Option<CopySettings> {
    let help = "example: copies = { every = \"1d\", keep = 3 } or copies = false";
    let mut settings = CopySettings::default();
    if let DeValue::Boolean(wanted) = at.value {
        return wanted.then_some(settings);
    }
    let mut section = at.section(report, help)?;
    if let Some(at) = section.get(report, "every")
        && let Some(every) = at.duration(report)
    {
        if every < 1_000 {
            report.complain(&at, "is out of range", "allowed: \"1s\" and more");
        }
        settings.every = every;
    }
    if let Some(at) = section.get(report, "keep")
        && let Some(keep) = at.number(report, 1..101)
    {
        settings.keep = usize::try_from(keep).unwrap_or(settings.keep);
    }
    section.finish(report);
    Some(settings)
}

fn metrics(at: &Entry<'_>, report: &mut Report<'_>) -> Option<SocketAddr> {
    let help = "allowed: an address and a port; example: metrics = \"127.0.0.1:9464\"";
    let (written, open) = if at.value.is_str() {
        (at.clone(), false)
    } else {
        let mut section = at.section(report, help)?;
        let open = section.get(report, "open");
        let open = open.and_then(|at| at.flag(report)).unwrap_or(false);
        let address = section.get(report, "address");
        if address.is_none() {
            report.missing(&section, "address", help);
        }
        section.finish(report);
        (address?, open)
    };
    let Ok(address) = written.text(report, help)?.parse::<SocketAddr>() else {
        report.complain(&written, "is no address with a port", help);
        return None;
    };
    if !address.ip().is_loopback() && !open {
        report.complain(
            &written,
            "can be read by anyone who reaches this address",
            "allowed: a loopback address such as 127.0.0.1:9464; if it is meant, write \
             metrics = { address = \"0.0.0.0:9464\", open = true }",
        );
        return None;
    }
    Some(address)
}

impl Timeouts {
    fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Self {
        let mut timeouts = Timeouts::default();
        for (key, limit) in [
            ("connect", &mut timeouts.connect),
            ("idle", &mut timeouts.idle),
            ("total", &mut timeouts.total),
        ] {
            if let Some(at) = section.get(report, key)
                && let Some(ms) = at.duration(report)
            {
                *limit = Duration::from_millis(ms);
            }
        }
        section.finish(report);
        timeouts
    }
}
