//! The workers, and connectors on them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use weir_runtime::{CallErrorKind, WorkerGone, Workers};

use crate::guest::Guest;
use crate::{load_in, runtime_with, tight};

#[tokio::test]
async fn a_job_that_panics_costs_itself_and_no_worker() {
    let workers = Workers::new(1).unwrap();
    for _ in 0..3 {
        let lost = workers.run(|| -> u32 { panic!("on purpose") }).await;
        assert!(matches!(lost, Err(WorkerGone::Panicked(why)) if why == "on purpose"));
    }
    assert_eq!(workers.run(|| 7).await.unwrap(), 7);
}

#[tokio::test]
async fn a_job_that_nobody_waits_for_any_more_does_not_run() {
    let workers = Arc::new(Workers::new(1).unwrap());
    let ran = Arc::new(AtomicU32::new(0));
    let (release, held) = mpsc::channel::<()>();
    let busy = tokio::spawn({
        let workers = workers.clone();
        async move { workers.run(move || held.recv()).await }
    });
    tokio::task::yield_now().await;
    let waiting = tokio::spawn({
        let (workers, ran) = (workers.clone(), ran.clone());
        async move {
            workers
                .run(move || ran.fetch_add(1, Ordering::Relaxed))
                .await
        }
    });
    tokio::task::yield_now().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    release.send(()).unwrap();
    busy.await.unwrap().unwrap().unwrap();
    workers.run(|| ()).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn more_jobs_than_places_all_get_their_turn() {
    let workers = Arc::new(Workers::new(2).unwrap());
    let jobs: Vec<_> = (0..500u32)
        .map(|n| {
            let workers = workers.clone();
            tokio::spawn(async move { workers.run(move || n * 2).await })
        })
        .collect();
    for (n, job) in (0u32..).zip(jobs) {
        assert_eq!(job.await.unwrap().unwrap(), n * 2);
    }
}

#[tokio::test]
async fn case_159_a_runaway_connector_holds_one_worker_until_its_time_is_up() {
    let runtime = runtime_with(tight());
    let good = load_in(&runtime, &Guest::good());
    let runaway = load_in(
        &runtime,
        &Guest::good().body("partitions", "(loop (br 0)) (i32.const 0)"),
    );
    let looping = {
        let runtime = runtime.clone();
        tokio::spawn(async move {
            runtime
                .workers()
                .run(move || runaway.partitions("orders", "{}"))
                .await
                .unwrap()
        })
    };
    tokio::task::yield_now().await;
    let began = Instant::now();
    for _ in 0..100 {
        let good = good.clone();
        let call = runtime
            .workers()
            .run(move || good.partitions("orders", "{}"));
        call.await.unwrap().unwrap().unwrap();
    }
    // 100 calls take some 3 ms; the bound is what ten runaway calls would have taken.
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    let error = looping.await.unwrap().unwrap_err();
    assert!(matches!(error.kind, CallErrorKind::OutOfTime { .. }));
}

/// A pool reserves some hundred GiB; with 8 there is none, and everything works all the same.
#[test]
fn without_address_space_for_a_pool_connectors_run_from_plain_memory() {
    let tests = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 8000000 && exec \"$0\" calls:: case_161"])
        .arg(tests)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains(" passed") && !text.contains(" 0 passed"),
        "{text}"
    );
}

#[test]
fn case_163_load_call_and_drop_for_ever_in_the_same_memory() {
    let temp = tempfile::tempdir().unwrap();
    let runtime = weir_runtime::Runtime::new(weir_runtime::RuntimeConfig {
        cache_dir: Some(temp.path().join("cache")),
        workers: 1,
        limits: tight(),
        ..weir_runtime::RuntimeConfig::default()
    })
    .unwrap();
    let bytes = Guest::good().build();
    let round = || {
        let connector = runtime.load("acme.wasm".as_ref(), &bytes).unwrap();
        connector.partitions("orders", "{}").unwrap().unwrap();
    };
    (0..100).for_each(|_| round());
    let grown = || {
        let before = resident_kib();
        (0..1000).for_each(|_| round());
        resident_kib().saturating_sub(before)
    };
    // Other tests may run beside this one, and grow for a moment; a leak of one connector's code each round would be
    // 50 MiB every time.
    let least = (0..3).map(|_| grown()).min().unwrap();
    assert!(least < 24 << 10, "{least} KiB");
    assert_eq!(runtime.cache_stats().compiled, 1);
}

/// What of this process lies in memory.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
