//! Components of toolchains that import WASI whether they need it or not.

use weir_runtime::{CallErrorKind, Refusal};

use crate::guest::{EMPTY, Guest};
use crate::{load, refusal};

const WASI: &str = r#"
package wasi:io@0.2.6 {
  interface error { resource error { to-debug-string: func() -> string; } }
  interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource input-stream { blocking-read: func(len: u64) -> result<list<u8>, stream-error>; }
    resource output-stream {
      check-write: func() -> result<u64, stream-error>;
      blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
    }
  }
}
package wasi:cli@0.2.6 {
  interface environment { get-environment: func() -> list<tuple<string, string>>; }
  interface exit { exit: func(status: result); }
  interface stdin { use wasi:io/streams@0.2.6.{input-stream}; get-stdin: func() -> input-stream; }
  interface stderr { use wasi:io/streams@0.2.6.{output-stream}; get-stderr: func() -> output-stream; }
}
package wasi:clocks@0.2.6 {
  interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
  interface monotonic-clock { now: func() -> u64; }
}
package wasi:random@0.2.6 { interface random { get-random-u64: func() -> u64; get-random-bytes: func(len: u64) -> list<u8>; } }
package wasi:filesystem@0.2.6 {
  interface types { resource descriptor { sync: func() -> result; } }
  interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }
}
package wasi:sockets@0.2.6 { interface tcp { connect: func() -> bool; } }
"#;

/// A connector whose contract also imports these interfaces.
fn guest(interfaces: &[&str]) -> Guest {
    Guest::good().contract(|wit| {
        let imports: String = interfaces
            .iter()
            .map(|name| format!("  import wasi:{name}@0.2.6;\n"))
            .collect();
        wit.replace("  import log;\n", &format!("  import log;\n{imports}")) + WASI
    })
}

/// Traps unless the condition holds.
fn demand(condition: &str) -> String {
    format!("(if (i32.eqz {condition}) (then unreachable))")
}

fn runs(guest: &Guest) {
    let connector = load(guest);
    for _ in 0..3 {
        connector.partitions("orders", "{}").unwrap().unwrap();
    }
}

#[test]
fn there_is_nothing_in_it() {
    let demands = [
        // No environment, no directories: lists of length 0.
        "(call $env (i32.const 32))".to_owned(),
        demand("(i32.eqz (i32.load (i32.const 36)))"),
        "(call $dirs (i32.const 32))".to_owned(),
        demand("(i32.eqz (i32.load (i32.const 36)))"),
        // Standard input is closed: error, and not the one with a payload.
        "(call $read (call $stdin) (i64.const 10) (i32.const 32))".to_owned(),
        demand("(i32.eq (i32.load8_u (i32.const 32)) (i32.const 1))"),
        demand("(i32.eq (i32.load8_u (i32.const 36)) (i32.const 1))"),
    ];
    runs(
        &guest(&["cli/environment", "cli/stdin", "filesystem/preopens"])
            .import(r#"(import "wasi:cli/environment@0.2.6" "get-environment" (func $env (param i32)))"#)
            .import(r#"(import "wasi:filesystem/preopens@0.2.6" "get-directories" (func $dirs (param i32)))"#)
            .import(r#"(import "wasi:cli/stdin@0.2.6" "get-stdin" (func $stdin (result i32)))"#)
            .import(
                r#"(import "wasi:io/streams@0.2.6" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))"#,
            )
            .body("partitions", &format!("{}{EMPTY}", demands.concat())),
    );
}

#[test]
fn clocks_stand_still_and_chance_repeats() {
    let demands = [
        "(call $wall (i32.const 32))".to_owned(),
        demand("(i64.eqz (i64.load (i32.const 32)))"),
        demand("(i64.eqz (call $mono))"),
        // The same in every instance, since each of the three calls of the test demands this number.
        demand("(i64.eq (call $chance) (i64.const 0xe220a8397b1dcdaf))"),
        demand("(i64.ne (call $chance) (i64.const 0xe220a8397b1dcdaf))"),
        "(call $bytes (i64.const 16) (i32.const 32))".to_owned(),
        demand("(i32.eq (i32.load (i32.const 36)) (i32.const 16))"),
    ];
    runs(
        &guest(&["clocks/wall-clock", "clocks/monotonic-clock", "random/random"])
            .import(r#"(import "wasi:clocks/wall-clock@0.2.6" "now" (func $wall (param i32)))"#)
            .import(r#"(import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $mono (result i64)))"#)
            .import(r#"(import "wasi:random/random@0.2.6" "get-random-u64" (func $chance (result i64)))"#)
            .import(r#"(import "wasi:random/random@0.2.6" "get-random-bytes" (func $bytes (param i64 i32)))"#)
            .body("partitions", &format!("{}{EMPTY}", demands.concat())),
    );
}

#[test]
fn what_is_printed_goes_nowhere_harmful() {
    let demands = [
        "(local.set $i (call $stderr))".to_owned(),
        "(call $room (local.get $i) (i32.const 32))".to_owned(),
        demand("(i32.eqz (i32.load8_u (i32.const 32)))"),
        demand("(i64.gt_u (i64.load (i32.const 40)) (i64.const 0))"),
        "(call $print (local.get $i) (i32.const 256) (i32.const 12) (i32.const 32))".to_owned(),
        demand("(i32.eqz (i32.load8_u (i32.const 32)))"),
        "(call $drop (local.get $i))".to_owned(),
    ];
    runs(
        &guest(&["cli/stderr"])
            .import(r#"(import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))"#)
            .import(
                r#"(import "wasi:io/streams@0.2.6" "[method]output-stream.check-write" (func $room (param i32 i32)))
                   (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush" (func $print (param i32 i32 i32 i32)))
                   (import "wasi:io/streams@0.2.6" "[resource-drop]output-stream" (func $drop (param i32)))"#,
            )
            .module(r#"(data (i32.const 256) "hello\nworld\n")"#)
            .body("partitions", &format!("{}{EMPTY}", demands.concat())),
    );
}

#[test]
fn a_panic_that_was_printed_is_the_crashs_last_words() {
    let connector = load(
        &guest(&["cli/stderr"])
            .import(r#"(import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))"#)
            .import(
                r#"(import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush" (func $print (param i32 i32 i32 i32)))"#,
            )
            .module(r#"(data (i32.const 256) "panicked at x.rs\n\n")"#)
            .body(
                "partitions",
                "(call $print (call $stderr) (i32.const 256) (i32.const 18) (i32.const 32)) unreachable",
            ),
    );
    let error = connector.partitions("orders", "{}").unwrap_err();
    let CallErrorKind::Trap { said, .. } = &error.kind else {
        panic!("{error}");
    };
    assert_eq!(said.as_deref(), Some("panicked at x.rs"));
}

#[test]
fn exit_is_a_crash() {
    let connector = load(
        &guest(&["cli/exit"])
            .import(r#"(import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))"#)
            .body("partitions", &format!("(call $exit (i32.const 0)) {EMPTY}")),
    );
    let error = connector.partitions("orders", "{}").unwrap_err();
    let CallErrorKind::Trap { reason, .. } = &error.kind else {
        panic!("{error}");
    };
    assert!(reason.contains("exit"), "{reason}");
}

#[test]
fn whoever_could_reach_out_is_refused() {
    let curious = guest(&["sockets/tcp"])
        .import(r#"(import "wasi:sockets/tcp@0.2.6" "connect" (func (result i32)))"#)
        .build();
    let refused = refusal(&curious);
    assert_eq!(
        refused,
        Refusal::ForeignImports {
            imports: vec!["wasi:sockets/tcp@0.2.6".into()]
        }
    );
    assert!(refused.to_string().contains("weir sends them"));
}
