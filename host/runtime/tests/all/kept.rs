//! Instances that answer more than one call: only where they are asked for, and never to another effect than fresh ones.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_runtime::{CallErrorKind, Connector, Runtime, RuntimeConfig};

use crate::guest::Guest;
use crate::{response, task, tight};

/// Counts its calls in `$calls`, and answers an empty page.
fn counting(then: &str) -> Guest {
    Guest::good()
        .module("(global $calls (mut i32) (i32.const 0))")
        .body(
            "read-response",
            &format!(
                "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
                 {then}
                 (i32.const 16)"
            ),
        )
}

fn keeping(guest: &Guest) -> Arc<Connector> {
    let runtime = Runtime::new(RuntimeConfig {
        workers: 1,
        kept: true,
        limits: tight(),
        ..RuntimeConfig::default()
    })
    .unwrap();
    runtime
        .load(Path::new("acme.wasm"), &guest.build())
        .unwrap()
}

fn read(connector: &Connector) -> Result<(), CallErrorKind> {
    let page = connector.read_response(&task(), None, &response("[]"));
    page.map_err(|error| error.kind)
        .map(|page| assert!(page.unwrap().records.is_empty()))
}

#[test]
fn a_kept_instance_answers_as_a_fresh_one_does() {
    let connector = keeping(&Guest::good());
    let fresh = crate::load(&Guest::good());
    for _ in 0..200 {
        assert_eq!(
            connector.build_request(&task(), None).unwrap().unwrap(),
            fresh.build_request(&task(), None).unwrap().unwrap()
        );
        read(&connector).unwrap();
    }
}

#[test]
fn a_connector_that_remembers_is_found_out() {
    // Says "truncated" from its second call on.
    let connector = keeping(&counting(
        "(if (i32.gt_u (global.get $calls) (i32.const 1))
           (then (i32.store8 (i32.const 72) (i32.const 1))))",
    ));
    read(&connector).unwrap();
    let error = read(&connector).unwrap_err();
    assert!(
        matches!(&error, CallErrorKind::Invalid(why) if why.contains("remembers")),
        "{error}"
    );
}

#[test]
fn an_instance_that_crashed_is_not_called_again() {
    // Every third call of one instance crashes.
    let connector = keeping(&counting(
        "(if (i32.eq (global.get $calls) (i32.const 3)) (then unreachable))",
    ));
    let crashed: Vec<bool> = (0..9).map(|_| read(&connector).is_err()).collect();
    assert_eq!(crashed, [false, false, true].repeat(3));
}

#[test]
fn each_call_has_its_own_time() {
    // Some 10 ms a call, of half a second by the wall clock: all together would be too late.
    let connector = keeping(&counting(
        "(local.set 0 (i32.const 10_000_000))
         (loop $again (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $again (local.get 0)))",
    ));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(700) {
        read(&connector).unwrap();
    }
}

#[test]
fn an_endless_loop_ends() {
    let connector = keeping(&counting("(loop $again (br $again))"));
    let error = read(&connector).unwrap_err();
    assert!(matches!(error, CallErrorKind::OutOfTime { .. }), "{error}");
}
