//! What the runtime costs: start, load, and one call of a connector.
//!
//! `cargo run -p weir-runtime --example measure -- FILE.wasm [STREAM PARTITION CONFIG ANSWER.json]`
#![allow(clippy::print_stdout, reason = "a program")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_runtime::contract::{Body, Reason, Response, Task, Window};
use weir_runtime::{Limits, Runtime, RuntimeConfig};

const ROUNDS: u32 = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = PathBuf::from(args.next().ok_or("name a connector's file")?);
    let bytes = std::fs::read(&file)?;
    let cache = std::env::temp_dir().join(format!("weir-measure-{}", std::process::id()));
    let config = RuntimeConfig {
        cache_dir: Some(cache.clone()),
        workers: 2,
        limits: Limits::default(),
        ..RuntimeConfig::default()
    };

    let (cold, start) = timed(|| Runtime::new(config.clone()));
    println!("start               {start:?}");
    let (loaded, time) = timed(|| cold.as_ref().map(|runtime| runtime.load(&file, &bytes)));
    loaded.map_err(|error| error.to_string())??;
    println!("load, compiling     {time:?}");
    drop(cold);

    let (warm, start) = timed(|| Runtime::new(config));
    let warm = warm?;
    let (connector, load) = timed(|| warm.load(&file, &bytes));
    let connector = connector?;
    println!("start               {start:?}");
    println!("load, from cache    {load:?}");
    println!(
        "again               {:?}",
        timed(|| warm.load(&file, &bytes)).1
    );

    if let (Some(stream), Some(partition), Some(config), Some(answer)) =
        (args.next(), args.next(), args.next(), args.next())
    {
        let task = Task {
            stream,
            partition: Some(partition),
            parent: None,
            config,
            cursor: None,
            window: Window {
                since: None,
                until: 1_700_000_000_000,
            },
            reason: Reason::Schedule,
            now: 1_700_000_000_000,
            page_size: 100,
        };
        let response = Response {
            status: 200,
            headers: Vec::new(),
            body: Body::Text(std::fs::read_to_string(answer)?),
            url: "https://api.example.test/page".into(),
            elapsed: 1,
        };
        let page = connector.read_response(&task, None, &response)?;
        println!(
            "records             {:?}",
            page.map(|page| page.records.len())
        );
        let each = best(|| connector.build_request(&task, None).is_ok());
        println!("build-request       {each:?}");
        let each = best(|| connector.read_response(&task, None, &response).is_ok());
        println!("read-response       {each:?}");
    }
    println!(
        "describe            {:?}",
        best(|| connector.describe_for("{}").is_ok())
    );
    println!(
        "peak in the guest   {} KiB",
        connector.stats().peak_memory >> 10
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        for line in status
            .lines()
            .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
        {
            println!("{line}");
        }
    }
    std::fs::remove_dir_all(cache)?;
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let result = work();
    (result, began.elapsed())
}

/// The mean of some rounds, of the best of three tries.
fn best<T>(work: impl Fn() -> T) -> Duration {
    (0..3)
        .map(|_| timed(|| (0..ROUNDS).for_each(|_| drop(work()))).1 / ROUNDS)
        .min()
        .unwrap_or_default()
}
