//! The runtime against connectors that keep the rules, and against all others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy takes the helpers of tests for production code"
)]

mod cache;
mod calls;
mod files;
mod guest;
mod hostile;
mod kept;
mod limits;
mod lines;
mod results;
mod threads;
mod wasi;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_runtime::contract::{Body, Reason, Response, Task, Window};
use weir_runtime::{Connector, Limits, Refusal, Runtime, RuntimeConfig};

use guest::Guest;

fn runtime() -> Arc<Runtime> {
    runtime_with(Limits::default())
}

fn runtime_with(limits: Limits) -> Arc<Runtime> {
    Runtime::new(RuntimeConfig {
        cache_dir: None,
        workers: 2,
        limits,
        ..RuntimeConfig::default()
    })
    .expect("the runtime starts")
}

/// Limits that hostile connectors hit soon.
fn tight() -> Limits {
    Limits {
        memory: 8 << 20,
        call: Duration::from_millis(50),
        describe: Duration::from_millis(50),
        returned: 2 << 20,
        ..Limits::default()
    }
}

fn load(guest: &Guest) -> Arc<Connector> {
    load_in(&runtime(), guest)
}

fn load_in(runtime: &Runtime, guest: &Guest) -> Arc<Connector> {
    match runtime.load(Path::new("acme.wasm"), &guest.build()) {
        Ok(connector) => connector,
        Err(error) => panic!("{error}"),
    }
}

/// What is wrong with a file that must not load.
fn refusal(bytes: &[u8]) -> Refusal {
    let error = runtime()
        .load(Path::new("acme.wasm"), bytes)
        .expect_err("the file is refused");
    assert!(error.to_string().starts_with("acme.wasm: "), "{error}");
    error.refusal
}

fn task() -> Task {
    Task {
        stream: "orders".into(),
        partition: None,
        parent: None,
        config: "{}".into(),
        cursor: None,
        window: Window {
            since: None,
            until: 1_700_000_000_000,
        },
        reason: Reason::Schedule,
        now: 1_700_000_000_000,
        page_size: 100,
    }
}

fn response(body: &str) -> Response {
    Response {
        status: 200,
        headers: Vec::new(),
        body: Body::Text(body.into()),
        url: "https://api.example.test/orders".into(),
        elapsed: 12,
    }
}
