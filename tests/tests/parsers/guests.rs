//! What must hold for any bytes that stand in a connector's file or come out of a connector. As in `bodies`: the
//! properties beside this file and the fuzz targets run the same functions.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_runtime::contract::{Body, Reason, Response, Task, Window};
use weir_runtime::{CallErrorKind, Connector, Limits, Runtime, RuntimeConfig};

use super::guest::Guest;

fn runtime() -> &'static Arc<Runtime> {
    static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Runtime::new(RuntimeConfig {
            workers: 1,
            inline: true,
            limits: Limits {
                // A fuzzed build is many times slower, and what it is slow at is not the connector's fault.
                call: Duration::from_secs(10),
                describe: Duration::from_secs(10),
                ..Limits::default()
            },
            ..RuntimeConfig::default()
        })
        .expect("the runtime starts")
    })
}

/// A connector's file: it loads or is refused, with a reason of one line and of modest length.
pub fn component(data: &[u8]) {
    match runtime().load(Path::new("fuzz.wasm"), data) {
        Ok(connector) => {
            assert!(!connector.name().is_empty());
            let _ = connector.partitions("orders", "{}");
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.starts_with("fuzz.wasm: "), "{told}");
            assert!(!told.chars().any(char::is_control), "{told:?}");
            assert!(told.len() < 16 << 10, "{} bytes of reason", told.len());
        }
    }
}

/// A connector's file that is right but for one place: what `component` alone would take long to come to.
pub fn damaged_component(at: usize, byte: u8) {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    let mut bytes = GOOD.get_or_init(|| Guest::good().build()).clone();
    let length = bytes.len();
    if let Some(place) = bytes.get_mut(at % length) {
        *place = byte;
    }
    component(&bytes);
}

/// Takes the answer's text, as it stands in its memory, for its result.
fn parrot() -> &'static Arc<Connector> {
    static PARROT: OnceLock<Arc<Connector>> = OnceLock::new();
    PARROT.get_or_init(|| {
        let guest = Guest::good().pages(4).body(
            "read-response",
            "(memory.copy (i32.const 65536) (i32.load offset=136 (local.get $args)) (i32.load offset=140 (local.get $args)))
             (i32.const 65536)",
        );
        runtime()
            .load(Path::new("parrot.wasm"), &guest.build())
            .expect("it keeps the rules")
    })
}

/// Any bytes as the result of a call: a page within all bounds, or the connector's fault, and never the host's.
pub fn guest_result(data: &[u8]) {
    let task = Task {
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
    };
    let response = Response {
        status: 200,
        headers: Vec::new(),
        body: Body::Bytes(data.iter().copied().take(32 << 10).collect()),
        url: "https://api.example.test/orders".into(),
        elapsed: 1,
    };
    match parrot().read_response(&task, None, &response) {
        Ok(Ok(page)) => {
            use weir_runtime::limits::{CURSOR, RECORD_ID, RECORDS, STEPS};
            assert!(page.records.len() <= RECORDS && page.next.len() <= STEPS);
            assert!(
                page.records
                    .iter()
                    .all(|record| record.id.len() <= RECORD_ID)
            );
            assert!(page.cursor.is_none_or(|cursor| cursor.len() <= CURSOR));
        }
        Ok(Err(fault)) => {
            assert!(fault.message.len() <= 4 << 10);
            assert!(!fault.message.chars().any(char::is_control));
        }
        Err(error) => assert!(
            !matches!(error.kind, CallErrorKind::Host { .. }),
            "the host is blamed: {error}"
        ),
    }
}
