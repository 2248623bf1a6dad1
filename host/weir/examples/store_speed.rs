//! What the store costs: 200,000 records of about 400 bytes, page by page, with the pages of 32 polls in flight
//! and one sink that takes everything (`files`: a file sink); beside it, a plain loop with one upsert per record and one durable
//! transaction per page. Prints wall time, CPU time and peak memory of one of them, as a process of its own.
//!
//! - `store_speed store|files|loop [PAGE_SIZE] [RECORDS] [ascending|random]`
//! - `store_speed fill PATH [RECORDS]` leaves a store as a killed process does
//! - `store_speed open PATH` opens it, tells how long that took, and leaves it the same way

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use redb::TableDefinition;
use tokio::sync::watch;
use weir::clock::SystemClock;
use weir::sink::{Delivery, DeliverySettings, Ended, FileSettings, FileSink, Mode};
use weir::store::{
    Commit, Conclusion, Dedup, Handled, PollRow, PreparedRecord, RecordData, RedbStore, Store,
    StoreOptions, Ticket, UnitId, UnitKey,
};
use weir_rules::model::{Reason, Window};
use weir_rules::walk::Tally;

const PAD: &str = concat!(
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
);
const IN_FLIGHT: usize = 32;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_else(|| "store".into());
    match what.as_str() {
        "store" | "files" | "loop" => {
            let load = Load {
                page_size: args.next().map_or(Ok(1000), |text| text.parse())?,
                records: args.next().map_or(Ok(200_000), |text| text.parse())?,
                ascending: args.next().is_none_or(|order| order == "ascending"),
            };
            measure(&what, &load).await
        }
        "fill" => {
            let path = args.next().context("fill needs a PATH")?;
            let load = Load {
                page_size: 1000,
                records: args.next().map_or(Ok(200_000), |text| text.parse())?,
                ascending: true,
            };
            let store = RedbStore::open(Path::new(&path), StoreOptions::default())?;
            let taken = take_all(store.clone(), load.records);
            fill(&store, &load, taken).await?;
            std::process::exit(0)
        }
        "open" => {
            let path = args.next().context("open needs a PATH")?;
            let start = Instant::now();
            let store = RedbStore::open(Path::new(&path), StoreOptions::default())?;
            let took = start.elapsed();
            let records = store.record_count(UnitId(1))?;
            println!(
                "opened {records} records in {:.2} ms",
                took.as_secs_f64() * 1e3
            );
            std::process::exit(0)
        }
        other => bail!("`{other}` is none of store, files, loop, fill, open"),
    }
}

struct Load {
    page_size: usize,
    records: usize,
    ascending: bool,
}

impl Load {
    fn pages(&self) -> impl Iterator<Item = Vec<PreparedRecord>> {
        (0..self.records).step_by(self.page_size).map(|first| {
            page(
                first,
                self.page_size.min(self.records - first),
                self.ascending,
            )
        })
    }
}

async fn measure(what: &str, load: &Load) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("store-speed-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("weir.redb");
    let start = Instant::now();
    let transactions = match what {
        "store" => {
            let store = RedbStore::open(&path, StoreOptions::default())?;
            let taken = take_all(store.clone(), load.records);
            fill(&store, load, taken).await?;
            store.transactions()
        }
        "files" => {
            let store = RedbStore::open(&path, StoreOptions::default())?;
            let file = directory.join("{stream}.ndjson");
            let taken = into_files(store.clone(), load.records, file);
            fill(&store, load, taken).await?;
            store.transactions()
        }
        _ => plain_loop(&path, load)?,
    };
    println!(
        "{what}: {} records, pages of {}: {:.2} s wall, {:.2} s CPU, {:.1} MiB peak, {transactions} transactions, \
         file {:.1} MiB",
        load.records,
        load.page_size,
        start.elapsed().as_secs_f64(),
        cpu_seconds()?,
        peak_mib()?,
        std::fs::metadata(&path)?.len() as f64 / 1048576.0,
    );
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// One page's text and its records.
fn page(first: usize, count: usize, ascending: bool) -> Vec<PreparedRecord> {
    let mut text = String::with_capacity(count * 410);
    let mut places = Vec::with_capacity(count);
    for number in first..first + count {
        let start = text.len();
        let spread = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let id = format!(
            "rec-{:016x}",
            if ascending { number as u64 } else { spread }
        );
        text.push_str(&format!(r#"{{"id":"{id}","n":{number},"pad":"{PAD}"}}"#));
        places.push((id, start, text.len(), spread));
    }
    let text: Arc<str> = text.into();
    places
        .into_iter()
        .map(|(id, start, end, spread)| PreparedRecord {
            id,
            hash: {
                let mut hash = [7; 32];
                for (byte, random) in hash.iter_mut().zip(spread.to_be_bytes()) {
                    *byte = random;
                }
                hash
            },
            updated_at: Some(1_700_000_000_000),
            deleted: false,
            data: RecordData::Slice {
                page: text.clone(),
                start,
                end,
            },
        })
        .collect()
}

async fn fill(
    store: &Arc<RedbStore>,
    load: &Load,
    taken: impl Future<Output = Result<()>> + Send + 'static,
) -> Result<()> {
    store.set_sinks(vec!["out".into()]).await??;
    let key = UnitKey {
        connection: "acme".into(),
        stream: "orders".into(),
        partition: None,
    };
    let unit = store.ensure_unit(&key).await??.id;
    let reader = tokio::spawn(taken);
    let mut in_flight = VecDeque::new();
    for page in load.pages() {
        in_flight.push_back(store.commit(commit(unit, &key, page)));
        if in_flight.len() == IN_FLIGHT
            && let Some(oldest) = in_flight.pop_front()
        {
            oldest.await??;
        }
    }
    for rest in in_flight {
        rest.await??;
    }
    reader.await??;
    ensure!(
        store.record_count(unit)? == load.records as u64,
        "records are missing"
    );
    Ok(())
}

fn commit(unit: UnitId, key: &UnitKey, records: Vec<PreparedRecord>) -> Commit {
    let key = key.clone();
    Commit {
        unit,
        ticket: Ticket(1),
        seen_at: 1_700_000_001_000,
        records,
        unlisted: Vec::new(),
        validators: Vec::new(),
        budgets: Vec::new(),
        dedup: Dedup::default(),
        conclude: Box::new(move |seen| Conclusion {
            due: Some(Some(1_700_000_060_000 + seen.new as i64)),
            poll: Some(PollRow {
                unit,
                key,
                reason: Reason::Schedule,
                window: Window {
                    since: None,
                    until: 0,
                },
                intended: None,
                started: 0,
                ended: 0,
                outcome: "ok".into(),
                class: None,
                code: None,
                message: None,
                tally: Tally {
                    calls: 1,
                    records: seen.new,
                    new: seen.new,
                    full_page: true,
                    latency: 1,
                    ..Tally::default()
                },
                interval: 60_000,
                why: "as configured".into(),
                polls: 1,
            }),
            ..Conclusion::default()
        }),
    }
}

/// A sink that takes everything and keeps nothing.
async fn take_all(store: Arc<RedbStore>, records: usize) -> Result<()> {
    let mut end = store.outbox_end();
    let (mut after, mut taken) = (None, 0);
    while taken < records {
        let batch = store.outbox("out", after, 1 << 20)?;
        let Some(up_to) = batch.up_to else {
            end.changed().await?;
            continue;
        };
        taken += batch.entries.len();
        after = Some(up_to);
        let acknowledged = store.delivered("out", Handled::up_to(up_to));
        if taken == records {
            acknowledged.await??;
        }
    }
    let left = store.outbox_size()?.entries;
    ensure!(left == 0, "{left} entries are left in the outbox");
    Ok(())
}

/// The delivery loop and a file sink, until all records are in the file.
async fn into_files(store: Arc<RedbStore>, records: usize, file: PathBuf) -> Result<()> {
    let sink = FileSink::new("out", FileSettings::new(file))?;
    let clock = Arc::new(SystemClock::new());
    let delivery = Delivery::new(store, clock, Box::new(sink), DeliverySettings::default());
    let mut status = delivery.status();
    let mode = watch::Sender::new(Mode::Run);
    let running = tokio::spawn(delivery.run(mode.subscribe()));
    status
        .wait_for(|status| status.delivered == records as u64)
        .await?;
    mode.send_replace(Mode::Drain);
    let ended = running.await?;
    ensure!(ended == Ended::Drained, "{ended:?}");
    Ok(())
}

fn plain_loop(path: &Path, load: &Load) -> Result<u64> {
    const HASHES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("hashes");
    let db = redb::Builder::new().set_cache_size(16 << 20).create(path)?;
    let mut transactions = 0;
    for page in load.pages() {
        let tx = db.begin_write()?;
        {
            let mut hashes = tx.open_table(HASHES)?;
            for record in &page {
                hashes.insert(record.id.as_str(), record.hash.as_slice())?;
            }
        }
        tx.commit()?;
        transactions += 1;
    }
    Ok(transactions)
}

/// User and system time of this process.
fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat
        .rsplit(')')
        .next()
        .context("no name in /proc/self/stat")?;
    let ticks: u64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(ticks as f64 / 100.0)
}

fn peak_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM in /proc/self/status")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
