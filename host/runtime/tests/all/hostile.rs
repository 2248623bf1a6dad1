//! Connectors that want more than they may have: every limit is hit by one.

use std::time::{Duration, Instant};

use serde_json::json;
use weir_runtime::{CallErrorKind, Connector, Limits};

use crate::guest::{self, Guest};
use crate::{load_in, response, runtime_with, task, tight};

/// Calls the function with a connector that has this body for it.
fn run(function: &str, body: &str) -> CallErrorKind {
    run_guest(function, &Guest::good().body(function, body))
}

fn run_guest(function: &str, guest: &Guest) -> CallErrorKind {
    let connector = load_in(&runtime_with(tight()), guest);
    let kind = call(&connector, function);
    // Whatever happened, the connector can be called again, and fails in the same way.
    assert_eq!(
        std::mem::discriminant(&kind),
        std::mem::discriminant(&call(&connector, function))
    );
    kind
}

fn call(connector: &Connector, function: &str) -> CallErrorKind {
    let error = match function {
        "partitions" => connector.partitions("orders", "{}").err(),
        "build-request" => connector.build_request(&task(), None).err(),
        "read-response" => connector
            .read_response(&task(), None, &response("[]"))
            .err(),
        other => panic!("{other}"),
    };
    let error = error.expect("the call fails");
    assert_eq!(error.function.name(), function);
    error.kind
}

const FUNCTIONS: [&str; 3] = ["partitions", "build-request", "read-response"];

#[test]
fn case_159_an_endless_loop_ends_in_every_function() {
    for function in FUNCTIONS {
        let began = Instant::now();
        let kind = run(function, "(loop (br 0)) (i32.const 0)");
        assert!(
            matches!(kind, CallErrorKind::OutOfTime { allowed_ms: 50, .. }),
            "{kind}"
        );
        // Two calls of 50 ms of processor time, at most ten times as long by the clock, and the compilation.
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn case_161_memory_ends_at_its_limit() {
    for function in FUNCTIONS {
        let kind = run(
            function,
            "(loop (drop (memory.grow (i32.const 1))) (br 0)) (i32.const 0)",
        );
        let CallErrorKind::OutOfMemory { wanted, allowed } = kind else {
            panic!("{kind}");
        };
        assert_eq!((wanted, allowed), ((8 << 20) + (64 << 10), 8 << 20));
        assert!(kind.to_string().contains("out of memory"));
    }
}

#[test]
fn one_huge_allocation() {
    let kind = run(
        "partitions",
        "(drop (memory.grow (i32.const 60000))) (i32.const 0)",
    );
    assert!(
        matches!(
            kind,
            CallErrorKind::OutOfMemory {
                allowed: 8_388_608,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn a_start_with_more_memory_than_allowed_is_refused_at_load() {
    let refused = runtime_with(tight())
        .load("acme.wasm".as_ref(), &Guest::good().pages(200).build())
        .unwrap_err();
    assert!(refused.to_string().contains("out of memory"), "{refused}");
    let refused = runtime_with(Limits::default())
        .load("acme.wasm".as_ref(), &Guest::good().pages(5000).build())
        .unwrap_err();
    assert!(
        matches!(refused.refusal, weir_runtime::Refusal::NotCompilable(_)),
        "{refused}"
    );
}

#[test]
fn memory_is_counted_over_all_calls_of_grow_and_reported() {
    let connector = load_in(
        &runtime_with(tight()),
        &Guest::good().body(
            "partitions",
            "(drop (memory.grow (i32.const 32)))
             (i32.const 16)",
        ),
    );
    connector.partitions("orders", "{}").unwrap().unwrap();
    assert_eq!(connector.stats().peak_memory, 33 * 65536);
}

#[test]
fn tables_end_at_their_limit() {
    // A refused table is an answer of -1, which this guest takes for a reason to trap.
    let guest = Guest::good().module("(table $t 1 funcref)").body(
        "partitions",
        "(loop
            (if (i32.eq (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1)) (then unreachable))
            (br 0))
         (i32.const 0)",
    );
    let kind = run_guest("partitions", &guest);
    assert!(matches!(kind, CallErrorKind::Trap { .. }), "{kind}");
}

#[test]
fn endless_recursion_is_a_trap_and_not_the_end_of_the_process() {
    let guest = Guest::good()
        .module("(func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))")
        .body("partitions", "(call $deep (i32.const 0))");
    let connector = load_in(&runtime_with(tight()), &guest);
    // On a thread like the workers'.
    let kind = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || call(&connector, "partitions"))
        .unwrap()
        .join()
        .unwrap();
    let CallErrorKind::Trap { reason, frames, .. } = kind else {
        panic!("{kind}");
    };
    assert!(reason.contains("stack"), "{reason}");
    assert_eq!(frames, ["deep"; 6]);
}

#[test]
fn a_crash_comes_with_its_last_words() {
    let guest = Guest::good()
        .with_log()
        .module(r#"(data (i32.const 256) "at lib.rs:7: no such field\n")"#)
        .body(
            "partitions",
            "(call $log (i32.const 2) (i32.const 256) (i32.const 26)) unreachable",
        );
    let kind = run_guest("partitions", &guest);
    let CallErrorKind::Trap { said, .. } = &kind else {
        panic!("{kind}");
    };
    assert_eq!(said.as_deref(), Some("at lib.rs:7: no such field"));
    assert!(
        kind.to_string().contains("its last words: at lib.rs:7"),
        "{kind}"
    );
}

#[test]
fn a_huge_string_is_not_copied() {
    // A fault whose message claims 4 MiB.
    let kind = run_guest(
        "partitions",
        &Guest::good()
            .pages(100)
            .body("partitions", &lying_list(4 << 20, 1)),
    );
    assert!(
        matches!(kind, CallErrorKind::TooMuchReturned { allowed: 2_097_152 }),
        "{kind}"
    );
}

#[test]
fn a_list_of_a_million_items_is_not_copied() {
    let kind = run_guest(
        "partitions",
        &Guest::good()
            .pages(127)
            .body("partitions", &lying_list(0, 1_000_000)),
    );
    assert!(
        matches!(kind, CallErrorKind::TooMuchReturned { .. }),
        "{kind}"
    );
}

#[test]
fn a_list_that_lies_beyond_memory_is_a_trap() {
    let kind = run("partitions", &lying_list(0, 1_000_000));
    assert!(matches!(kind, CallErrorKind::Trap { .. }), "{kind}");
}

/// `ok(list)` at 16 with so many strings from 64 on, the first of them so long.
pub(crate) fn lying_list(string: usize, count: usize) -> String {
    format!(
        "(i32.store (i32.const 16) (i32.const 0))
         (i32.store (i32.const 24) (i32.const 64))
         (i32.store (i32.const 28) (i32.const {count}))
         (i32.store (i32.const 64) (i32.const 1024))
         (i32.store (i32.const 68) (i32.const {string}))
         (i32.const 16)"
    )
}

#[test]
fn text_that_is_not_utf8_is_a_trap() {
    let body = format!(
        "(i32.store8 (i32.const 1024) (i32.const 0xff)) {}",
        lying_list(4, 1)
    );
    let kind = run("partitions", &body);
    let CallErrorKind::Trap { reason, .. } = kind else {
        panic!("{kind}");
    };
    assert!(reason.contains("utf-8"), "{reason}");
}

#[test]
fn a_result_without_meaning_is_a_trap() {
    // No such case of `result`.
    let kind = run(
        "partitions",
        "(i32.store8 (i32.const 16) (i32.const 9)) (i32.const 16)",
    );
    assert!(matches!(kind, CallErrorKind::Trap { .. }), "{kind}");
    // Far outside memory.
    let kind = run("partitions", "(i32.const -8)");
    assert!(matches!(kind, CallErrorKind::Trap { .. }), "{kind}");
}

#[test]
fn an_allocator_that_misleads_is_a_trap() {
    let guest = Guest::good().build_with_allocator("(i32.const -16)");
    let connector = runtime_with(tight())
        .load("acme.wasm".as_ref(), &guest)
        .unwrap();
    let kind = call(&connector, "partitions");
    assert!(matches!(kind, CallErrorKind::Trap { .. }), "{kind}");
}

#[test]
fn a_faults_words_are_cut_and_tamed() {
    let long = format!("\x1b[2J\n{}", "x".repeat(5000));
    let mut fault = guest::fault(&long);
    fault["limits"] = json!([{ "scope": "app", "quota-unit": "requests", "used-percent": -1.0 }]);
    let connector = load_in(
        &runtime_with(tight()),
        &Guest::good().answer("partitions", json!({ "err": fault })),
    );
    let fault = connector.partitions("orders", "{}").unwrap().unwrap_err();
    assert!(fault.message.starts_with("\\u{1b}[2J\\nxxx"));
    assert!(fault.message.len() <= 1024 + '…'.len_utf8());
    assert!(fault.limits.is_empty());
}
