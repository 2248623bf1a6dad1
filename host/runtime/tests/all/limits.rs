//! Limits of single connectors.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_runtime::{CallErrorKind, Limits, Refusal, Runtime, RuntimeConfig, RuntimeError};

use crate::guest::Guest;
use crate::hostile::lying_list;

/// A runtime in which `acme` alone has these limits.
fn with_acme(acme: Limits) -> Result<Arc<Runtime>, RuntimeError> {
    Runtime::new(RuntimeConfig {
        workers: 1,
        limits_of: [("acme".to_owned(), acme)].into(),
        ..RuntimeConfig::default()
    })
}

/// Why the connector in that file gives no partitions.
fn partitions(runtime: &Runtime, file: &str, body: &str) -> CallErrorKind {
    let guest = Guest::good().body("partitions", body);
    let connector = runtime.load(Path::new(file), &guest.build()).unwrap();
    connector.partitions("orders", "{}").unwrap_err().kind
}

const GROW: &str = "(loop (drop (memory.grow (i32.const 1))) (br 0)) (i32.const 0)";

#[test]
fn a_connector_is_held_to_the_limits_that_stand_under_its_name() {
    let runtime = with_acme(Limits {
        memory: 6 << 20,
        call: Duration::from_millis(60),
        returned: 70_000,
        ..Limits::default()
    })
    .unwrap();
    // The name that it tells counts, not only that of its file.
    for file in ["acme.wasm", "other.wasm"] {
        let kind = partitions(&runtime, file, GROW);
        assert!(
            matches!(
                kind,
                CallErrorKind::OutOfMemory {
                    allowed: 6_291_456,
                    ..
                }
            ),
            "{kind}"
        );
        let kind = partitions(&runtime, file, "(loop (br 0)) (i32.const 0)");
        assert!(
            matches!(kind, CallErrorKind::OutOfTime { allowed_ms: 60, .. }),
            "{kind}"
        );
        // A list of 30,000 strings of no length.
        let guest = Guest::good()
            .pages(20)
            .body("partitions", &lying_list(0, 30_000));
        let connector = runtime.load(Path::new(file), &guest.build()).unwrap();
        let kind = connector.partitions("orders", "{}").unwrap_err().kind;
        assert!(
            matches!(kind, CallErrorKind::TooMuchReturned { allowed: 70_000 }),
            "{kind}"
        );
    }
    let others = with_acme(Limits::default()).unwrap();
    let kind = partitions(&others, "acme.wasm", GROW);
    assert!(
        matches!(
            kind,
            CallErrorKind::OutOfMemory {
                allowed: 67_108_864,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn what_a_file_may_be_and_how_long_it_may_describe_itself_goes_by_the_files_name() {
    let runtime = with_acme(Limits {
        file: 64 << 10,
        describe: Duration::from_millis(60),
        ..Limits::default()
    })
    .unwrap();
    let filling = format!("(data (i32.const 4096) \"{}\")", "x".repeat(70_000));
    let large = Guest::good().pages(4).module(&filling).build();
    let refused =
        |file: &str, bytes: &[u8]| runtime.load(Path::new(file), bytes).map_err(|e| e.refusal);
    assert!(matches!(
        refused("acme.wasm", &large),
        Err(Refusal::TooLarge {
            allowed: 65_536,
            ..
        })
    ));
    assert!(refused("other.wasm", &large).is_ok());
    let slow = Guest::good()
        .body("describe", "(loop (br 0)) (i32.const 0)")
        .build();
    let error = refused("acme.wasm", &slow).unwrap_err();
    assert!(error.to_string().contains("60 ms"), "{error}");
    let error = refused("other.wasm", &slow).unwrap_err();
    assert!(error.to_string().contains("200 ms"), "{error}");
}

#[test]
fn limits_out_of_range_are_refused_with_the_connectors_name() {
    for wrong in [
        Limits {
            memory: 1 << 20,
            ..Limits::default()
        },
        Limits {
            memory: 1 << 30,
            ..Limits::default()
        },
        Limits {
            call: Duration::from_millis(1),
            ..Limits::default()
        },
        Limits {
            describe: Duration::from_secs(600),
            ..Limits::default()
        },
        Limits {
            returned: 10,
            ..Limits::default()
        },
        Limits {
            file: 10,
            ..Limits::default()
        },
        Limits {
            log: 1_000_000,
            ..Limits::default()
        },
    ] {
        let Err(RuntimeError::Limit(told)) = with_acme(wrong) else {
            panic!("{wrong:?} is taken");
        };
        assert!(told.starts_with("connector acme: "), "{told}");
    }
}
