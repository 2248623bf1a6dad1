//! `cargo xtask rounds`: loads a connector, asks it for a request, lets it read an answer, and drops it, thousands of
//! times; what the process holds at the start, in the middle and at the end. It must not grow.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use weir_runtime::contract::{Body, Reason, Response, Task, Window};
use weir_runtime::{Runtime, RuntimeConfig};

use crate::build;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often
    #[arg(long, default_value_t = 10_000)]
    rounds: u32,
    /// Every so many rounds the connector's file has changed, and is compiled
    #[arg(long, default_value_t = 500)]
    compile: u32,
}

/// Rounds before the first look: pools and caches fill then.
const WARM_UP: u32 = 100;
/// What the allocator and the pool may keep besides, in KiB.
const SLACK: u64 = 24 << 10;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kib: u64,
    mapped_kib: u64,
    handles: usize,
    threads: u64,
}

impl Held {
    fn now() -> anyhow::Result<Held> {
        let status = fs::read_to_string("/proc/self/status")?;
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            let number = line.and_then(|line| line.split_whitespace().nth(1));
            number
                .and_then(|number| number.parse().ok())
                .with_context(|| format!("/proc/self/status has no {name}"))
        };
        Ok(Held {
            resident_kib: number("VmRSS:")?,
            mapped_kib: number("VmSize:")?,
            handles: fs::read_dir("/proc/self/fd")?.count(),
            threads: number("Threads:")?,
        })
    }

    fn show(&self, what: &str, round: u32, began: Instant) {
        println!(
            "{what:<8} round {round:>6}  resident {:>8} KiB  mapped {:>11} KiB  handles {:>3}  threads {:>3}  {:>5} s",
            self.resident_kib,
            self.mapped_kib,
            self.handles,
            self.threads,
            began.elapsed().as_secs()
        );
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Those that are there will do: this is not about what they are.
    let dir = std::env::var_os("WEIR_CONNECTORS").map_or_else(build::directory, Into::into);
    let file = dir.join("hackernews.wasm");
    let bytes = fs::read(&file).with_context(|| {
        format!(
            "{}: `cargo xtask build --connectors-only` makes it",
            file.display()
        )
    })?;
    let cache = tempfile::tempdir()?;
    let runtime = Runtime::new(RuntimeConfig {
        cache_dir: Some(cache.path().join("compiled")),
        workers: 2,
        ..RuntimeConfig::default()
    })?;
    let began = Instant::now();
    let mut changed = bytes;
    let mut looks = Vec::new();
    for round in 0..=args.rounds + WARM_UP {
        if args.compile > 0 && round % args.compile == 0 {
            another(&mut changed, round);
        }
        one(&runtime, &file, &changed)?;
        let what = match round.checked_sub(WARM_UP) {
            Some(0) => "start",
            Some(done) if done == args.rounds / 2 => "middle",
            Some(done) if done == args.rounds => "end",
            _ => continue,
        };
        let held = Held::now()?;
        held.show(what, round - WARM_UP, began);
        looks.push(held);
    }
    let stats = runtime.cache_stats();
    println!("compiled {} times, {stats:?}", stats.compiled);
    judge(&looks)
}

/// Loads, polls, drops.
fn one(runtime: &Runtime, file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let connector = runtime.load(file, bytes)?;
    let stream = connector.descriptor().streams.first();
    let task = Task {
        stream: stream.map_or_else(String::new, |stream| stream.name.clone()),
        partition: None,
        parent: None,
        config: r#"{"query":"rust"}"#.into(),
        cursor: None,
        window: Window {
            since: None,
            until: 1_930_384_800_000,
        },
        reason: Reason::Schedule,
        now: 1_930_384_800_000,
        page_size: 100,
    };
    // A refusal is an answer too; a crash is none.
    let _ = connector.build_request(&task, None)?;
    let hits: Vec<String> = (0..100)
        .map(|id| format!(r#"{{"objectID":"{id}","created_at_i":1930384000,"title":"t"}}"#))
        .collect();
    let text = format!(r#"{{"hits":[{}],"nbHits":100}}"#, hits.join(","));
    let response = Response {
        status: 200,
        headers: Vec::new(),
        body: Body::Text(text),
        url: "https://hn.algolia.com/api/v1/search_by_date".into(),
        elapsed: 1,
    };
    let _ = connector.read_response(&task, None, &response)?;
    Ok(())
}

/// The same connector with another digest: a custom section says which.
fn another(bytes: &mut Vec<u8>, round: u32) {
    let name = b"round";
    let body = [&[name.len() as u8][..], name, &round.to_le_bytes()].concat();
    if round > 0 {
        bytes.truncate(bytes.len() - body.len() - 2);
    }
    bytes.extend([0, body.len() as u8]);
    bytes.extend(body);
}

fn judge(looks: &[Held]) -> anyhow::Result<()> {
    let [start, middle, end] = looks else {
        bail!("there were too few rounds to look three times");
    };
    let bound = start.resident_kib + start.resident_kib / 10 + SLACK;
    if end.resident_kib > bound && end.resident_kib > middle.resident_kib + SLACK / 4 {
        bail!("memory has grown: {end:?} after {start:?}");
    }
    if end.handles > start.handles || end.threads > start.threads {
        bail!("handles or threads have grown: {end:?} after {start:?}");
    }
    println!("nothing has grown");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(resident_kib: u64, handles: usize, threads: u64) -> Held {
        Held {
            resident_kib,
            mapped_kib: 0,
            handles,
            threads,
        }
    }

    #[test]
    fn growth_is_told() {
        let start = held(100_000, 9, 5);
        assert!(judge(&[start, held(120_000, 9, 5), held(121_000, 9, 5)]).is_ok());
        assert!(judge(&[start, held(150_000, 9, 5), held(200_000, 9, 5)]).is_err());
        assert!(judge(&[start, start, held(100_000, 10, 5)]).is_err());
        assert!(judge(&[start, start, held(100_000, 9, 6)]).is_err());
        assert!(judge(&[start]).is_err());
    }

    #[test]
    fn another_file_is_the_same_connector() {
        let mut bytes = vec![1, 2, 3];
        another(&mut bytes, 0);
        let first = bytes.clone();
        another(&mut bytes, 500);
        assert_eq!(first.len(), bytes.len());
        assert_ne!(first, bytes);
        assert!(bytes.starts_with(&[1, 2, 3, 0, 10, 5]));
    }
}
