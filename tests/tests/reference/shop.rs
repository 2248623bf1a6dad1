//! One vendor with one list of orders, and a host that polls it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir::clock::{BoxFuture, Clock};
use weir::http::{HttpRequest, HttpResponse, Transport, TransportError};
use weir::sink::line::Lines;
use weir_tests::answer::{SimAnswer, SimRequest};
use weir_tests::spec::{
    CollectionSpec, Envelope, LatencySpec, PageSize, VendorSpec, Write, WritesSpec,
};
use weir_tests::vendor::Vendor;

use crate::support::clock::TestClock;
use crate::support::{NOW, Rig};

/// A call on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// When it began, in ms after [`NOW`].
    pub(crate) at: i64,
    pub(crate) url: String,
    pub(crate) status: u16,
    /// Bytes of the answer as HTTP/1.1 sends it: status line, headers and body.
    pub(crate) bytes: usize,
}

/// The vendor behind the transport seam. An answer says what was true when the call came, and takes its time.
pub(crate) struct Wire {
    clock: Arc<TestClock>,
    pub(crate) vendor: Arc<Vendor>,
    calls: Mutex<Vec<Call>>,
    flying: Mutex<(u32, u32)>,
    /// A call waits for its answer while others go on; else it is the clock that goes on at once.
    waits: bool,
}

impl Wire {
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The most calls that were under way at once.
    pub(crate) fn most_at_once(&self) -> u32 {
        self.flying.lock().unwrap().1
    }
}

impl Transport for Wire {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let mut sim = SimRequest::get(request.url.as_str());
        for (name, value) in request.headers.iter().chain(&request.secret_headers) {
            sim = sim.with(name, value);
        }
        let now = self.clock.wall();
        let SimAnswer::Response(response) = self.vendor.handle(now, &sim) else {
            panic!("this vendor has no faults")
        };
        let headers = response.headers.iter();
        let headers: usize = headers
            .map(|(name, value)| name.len() + value.len() + ": \r\n".len())
            .sum();
        let first = match response.status {
            304 => "HTTP/1.1 304 Not Modified\r\n",
            _ => "HTTP/1.1 200 OK\r\n",
        };
        self.calls.lock().unwrap().push(Call {
            at: now - NOW,
            url: request.url.to_string(),
            status: response.status,
            bytes: first.len() + headers + "\r\n".len() + response.body.len(),
        });
        let mut flying = self.flying.lock().unwrap();
        flying.0 += 1;
        flying.1 = flying.1.max(flying.0);
        drop(flying);
        let elapsed = Duration::from_millis(response.latency_ms);
        Box::pin(async move {
            if self.waits {
                self.clock.sleep(elapsed).await;
            } else {
                let ms = i64::try_from(elapsed.as_millis()).expect("a short time");
                self.clock.advance(ms);
            }
            self.flying.lock().unwrap().0 -= 1;
            Ok(HttpResponse {
                status: response.status,
                headers: response.headers.clone(),
                body: response.decoded().expect("not compressed"),
                elapsed,
            })
        })
    }
}

/// A list of orders under `/shop/orders`, without a sign that there is more.
pub(crate) fn orders() -> CollectionSpec {
    CollectionSpec {
        envelope: Envelope {
            has_more: String::new(),
            ..Envelope::default()
        },
        page_size: PageSize {
            default: 1_000,
            max: 1_000,
            ..PageSize::default()
        },
        ..CollectionSpec::default()
    }
}

/// Orders that are written at these times, in ms after [`NOW`], each its own record.
pub(crate) fn written(times: impl IntoIterator<Item = i64>, start: i64) -> WritesSpec {
    let script = times.into_iter().enumerate().map(|(record, at)| Write {
        at_ms: NOW + at - start,
        record: record as u64,
        ..Write::default()
    });
    WritesSpec {
        script: script.collect(),
        ..WritesSpec::default()
    }
}

/// A vendor that began at `start`, whose answers take this long.
pub(crate) fn vendor(orders: CollectionSpec, takes: u64, start: i64) -> VendorAt {
    VendorAt {
        spec: VendorSpec {
            name: "shop".into(),
            base: "/shop".into(),
            collections: vec![orders],
            latency: LatencySpec {
                base_ms: takes,
                jitter_ms: 0,
                ..LatencySpec::default()
            },
            ..VendorSpec::default()
        },
        start,
        waits: false,
        pacing: "",
    }
}

pub(crate) struct VendorAt {
    spec: VendorSpec,
    start: i64,
    /// Calls are under way beside each other.
    pub(crate) waits: bool,
    /// What the connector is told of the vendor's limits.
    pub(crate) pacing: &'static str,
}

impl VendorAt {
    pub(crate) fn build(&self) -> Arc<Vendor> {
        Arc::new(Vendor::new(self.spec.clone(), self.start).expect("the spec is right"))
    }

    /// A host that polls it. `stream` is what the connector is told of the orders, `settings` what the host is.
    pub(crate) async fn polled(&self, stream: &str, settings: &str) -> (Rig, Arc<Wire>) {
        let clock = Arc::new(TestClock::new(NOW));
        let wire = Arc::new(Wire {
            clock: clock.clone(),
            vendor: self.build(),
            calls: Mutex::default(),
            flying: Mutex::default(),
            waits: self.waits,
        });
        let pacing = self.pacing;
        let config = format!(
            r#"
[connection.shop]
connector = "rest"

[connection.shop.config]
base_url = "https://shop.example.test/shop"
pacing = {{ {pacing} }}

[connection.shop.config.streams.orders]
path = "/orders"
records = "/data"
id = "/id"
updated_at = "/updated_at"
{stream}

[connection.shop.streams.orders]
{settings}
"#
        );
        let rig = Rig::on_clock(&config, wire.clone(), clock).await;
        (rig, wire)
    }
}

/// The ids of a page that is asked for by hand, and its stamps as they are written.
pub(crate) fn asked_by_hand(vendor: &Vendor, query: &str) -> Vec<(String, String)> {
    let request = SimRequest::get(&format!("https://shop.example.test/shop/orders?{query}"));
    let SimAnswer::Response(response) = vendor.handle(NOW, &request) else {
        panic!("this vendor has no faults")
    };
    let body: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    let records = body["data"].as_array().expect("an array");
    let text = |value: &serde_json::Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    records
        .iter()
        .map(|record| (text(&record["id"]), text(&record["updated_at"])))
        .collect()
}

/// What was handed over: id, time of change and time at which it was seen, both in ms after [`NOW`].
pub(crate) fn handed_over(rig: &Rig) -> Vec<(String, i64, i64)> {
    let batch = rig.host.store.outbox("main", None, usize::MAX);
    let (mut lines, mut text) = (Lines::default(), Vec::new());
    for entry in &batch.expect("the outbox reads").entries {
        lines.write(entry, &mut text);
    }
    let text = String::from_utf8(text).expect("lines are UTF-8");
    let ms = |value: &serde_json::Value| {
        let text = value.as_str().expect("a time");
        let moment: jiff::Timestamp = text.parse().expect("RFC 3339");
        moment.as_millisecond() - NOW
    };
    text.lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let id = line["id"].as_str().expect("an id").to_owned();
            (id, ms(&line["updated_at"]), ms(&line["seen_at"]))
        })
        .collect()
}

/// So many of them are different.
pub(crate) fn distinct(handed_over: &[(String, i64, i64)]) -> usize {
    let ids: std::collections::BTreeSet<&str> =
        handed_over.iter().map(|(id, ..)| id.as_str()).collect();
    ids.len()
}
