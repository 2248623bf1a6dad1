use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;

use super::*;
use crate::config::{Batch, Config, SinkConfig, load_with};
use crate::http::{HttpRequest, HttpResponse, TransportError};
use crate::sink::bench::{Bench, LeapingClock, NOW};
use crate::sink::{DeliverySettings, Ended, Mode};
use crate::store::Store as _;

/// One request as the receiver saw it.
#[derive(Clone, Debug, PartialEq)]
struct Got {
    at: Duration,
    key: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    url: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn ids(&self) -> Vec<String> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let id = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["id"].as_str().unwrap().to_owned()
        };
        text.lines().map(id).collect()
    }
}

type Answer = Box<dyn FnMut(&Got) -> (u16, Vec<(String, String)>) + Send>;

/// A receiver that answers as it is told, and remembers what it got.
struct Receiver {
    clock: Arc<LeapingClock>,
    got: Mutex<Vec<Got>>,
    answer: Mutex<Answer>,
}

impl Receiver {
    fn new(bench: &Bench, answer: impl FnMut(&Got) -> u16 + Send + 'static) -> Arc<Receiver> {
        let mut answer = answer;
        Receiver::with_headers(bench, move |got| (answer(got), Vec::new()))
    }

    fn with_headers(
        bench: &Bench,
        answer: impl FnMut(&Got) -> (u16, Vec<(String, String)>) + Send + 'static,
    ) -> Arc<Receiver> {
        Arc::new(Receiver {
            clock: bench.clock.clone(),
            got: Mutex::default(),
            answer: Mutex::new(Box::new(answer)),
        })
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// The ids that were taken, in order.
    fn taken(&self) -> Vec<String> {
        self.got().iter().flat_map(Got::ids).collect()
    }
}

impl Transport for Receiver {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let mut headers = request.headers;
        headers.extend(request.secret_headers);
        let key = headers.iter().find(|(name, _)| name == "idempotency-key");
        let got = Got {
            at: self.clock.monotonic(),
            key: key.unwrap().1.clone(),
            body: request.body.unwrap().to_vec(),
            url: request.url.to_string(),
            headers,
        };
        assert_eq!(request.method, "POST");
        let (status, headers) = (self.answer.lock().unwrap())(&got);
        self.got.lock().unwrap().push(got);
        let answer = match status {
            0 => Err(TransportError::Timeout {
                host: "ingest.example.test".into(),
                after: Duration::from_secs(30),
            }),
            status => Ok(HttpResponse {
                status,
                headers,
                body: Bytes::from_static(b"no such field tok_XYZ9"),
                elapsed: Duration::ZERO,
            }),
        };
        Box::pin(async move { answer })
    }
}

fn config(more: &str) -> Webhook {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weir.toml");
    let text = format!(
        "[sink.out]\ntype = \"webhook\"\nurl = \"https://ingest.example.test/records?team=a%20b\"\n{more}"
    );
    std::fs::write(&path, text).unwrap();
    let env = |name: &str| (name == "TOKEN").then(|| "tok_XYZ9".to_owned());
    let Config { mut sinks, .. } = load_with(&path, &env).unwrap();
    match sinks.remove("out") {
        Some(SinkConfig::Webhook(config)) => *config,
        other => panic!("{other:?}"),
    }
}

fn sink(bench: &Bench, receiver: &Arc<Receiver>, config: Webhook) -> Box<WebhookSink> {
    let settings = WebhookSettings {
        config,
        connect: Duration::from_secs(10),
        user_agent: "weir/test".into(),
    };
    let made = WebhookSink::new("out", receiver.clone(), bench.clock.clone(), settings);
    Box::new(made.unwrap())
}

async fn drain(bench: &Bench, receiver: &Arc<Receiver>, config: Webhook) -> Ended {
    let sink = sink(bench, receiver, config);
    let delivery = bench.deliver_to(sink, DeliverySettings::default());
    delivery.run(bench.mode.subscribe()).await
}

fn ids(range: std::ops::RangeInclusive<u32>) -> Vec<String> {
    range.map(|id| id.to_string()).collect()
}

async fn put(bench: &Bench, range: std::ops::RangeInclusive<u32>) {
    let ids = ids(range);
    let records: Vec<(&str, u8)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    bench.put(&records).await;
}

#[tokio::test]
async fn a_request_has_its_key_its_credential_and_the_lines() {
    let bench = Bench::new().await;
    put(&bench, 1..=3).await;
    let receiver = Receiver::new(&bench, |_| 202);
    let config = config(
        "auth = { bearer = { env = \"TOKEN\" } }\nheaders = { X-Team = \"data\", X-Key = { env = \"TOKEN\" } }",
    );
    assert_eq!(drain(&bench, &receiver, config).await, Ended::Drained);
    let got = receiver.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].ids(), ids(1..=3));
    assert_eq!(got[0].url, "https://ingest.example.test/records?team=a%20b");
    for (name, value) in [
        ("authorization", "Bearer tok_XYZ9"),
        ("x-team", "data"),
        ("x-key", "tok_XYZ9"),
        ("content-type", "application/x-ndjson"),
        ("user-agent", "weir/test"),
    ] {
        assert_eq!(got[0].header(name), Some(value));
    }
    assert_eq!((got[0].key.len(), &got[0].key[14..15]), (36, "4"));
    assert_eq!(bench.waiting(), 0);
    assert_eq!(
        bench.store.intent("out").unwrap(),
        None,
        "answered for good"
    );
}

#[tokio::test]
async fn batches_are_cut_by_number_and_by_bytes() {
    for (batch, expected) in [
        ("{ records = 4 }", vec![ids(1..=4), ids(5..=8), ids(9..=10)]),
        ("{ bytes = \"1KiB\" }", Vec::new()),
    ] {
        let bench = Bench::new().await;
        put(&bench, 1..=10).await;
        let receiver = Receiver::new(&bench, |_| 200);
        let config = config(&format!("batch = {batch}"));
        drain(&bench, &receiver, config).await;
        let got = receiver.got();
        let cut: Vec<_> = got.iter().map(Got::ids).collect();
        if expected.is_empty() {
            assert!(got.len() > 1 && got.iter().all(|got| got.body.len() <= 1024));
        } else {
            assert_eq!(cut, expected);
        }
        assert_eq!(receiver.taken(), ids(1..=10));
        let keys: std::collections::BTreeSet<_> = got.iter().map(|got| &got.key).collect();
        assert_eq!(keys.len(), got.len(), "each delivery has a key of its own");
    }
}

#[tokio::test]
async fn bodies_may_be_arrays_and_packed() {
    let bench = Bench::new().await;
    put(&bench, 1..=3).await;
    let receiver = Receiver::new(&bench, |_| 204);
    drain(&bench, &receiver, config("format = \"json\"\ngzip = true")).await;
    let got = &receiver.got()[0];
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("content-encoding"), Some("gzip"));
    let mut body = String::new();
    flate2::read::GzDecoder::new(&*got.body)
        .read_to_string(&mut body)
        .unwrap();
    let array: Vec<Value> = serde_json::from_str(&body).unwrap();
    let got: Vec<_> = array.iter().map(|line| line["key"].clone()).collect();
    assert_eq!(
        got,
        ["acme/orders/1/1", "acme/orders/2/1", "acme/orders/3/1"]
    );
}

#[tokio::test]
async fn every_try_of_a_batch_sends_the_same_bytes_under_the_same_key() {
    let bench = Bench::new().await;
    put(&bench, 1..=3).await;
    let mut answers = VecDeque::from([500, 0, 503, 200]);
    let receiver = Receiver::new(&bench, move |_| answers.pop_front().unwrap_or(200));
    let config = config("");
    let patient = DeliverySettings {
        drain_tries: 9,
        ..DeliverySettings::default()
    };
    let delivery = bench.deliver_to(sink(&bench, &receiver, config), patient);
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let got = receiver.got();
    assert_eq!(got.len(), 4);
    for again in &got[1..] {
        assert_eq!((&again.key, &again.body), (&got[0].key, &got[0].body));
    }
}

#[tokio::test]
async fn after_a_kill_the_batch_is_the_same_whatever_has_come_meanwhile() {
    let bench = Bench::new().await;
    put(&bench, 1..=3).await;
    let receiver = Receiver::new(&bench, |_| 0);
    assert!(matches!(
        drain(&bench, &receiver, config("")).await,
        Ended::GaveUp(_)
    ));
    let first = receiver.got()[0].clone();
    put(&bench, 4..=9).await;

    let bench = bench.after_a_kill().await;
    let receiver = Receiver::new(&bench, |_| 200);
    // Smaller batches now; this one was decided before.
    assert_eq!(
        drain(&bench, &receiver, config("batch = { records = 2 }")).await,
        Ended::Drained
    );
    let got = receiver.got();
    assert_eq!((&got[0].key, &got[0].body), (&first.key, &first.body));
    assert_eq!(receiver.taken(), ids(1..=9));
    assert!(got[1..].iter().all(|got| got.key != first.key));
}

#[tokio::test]
async fn under_other_settings_it_is_another_delivery() {
    let bench = Bench::new().await;
    put(&bench, 1..=3).await;
    let receiver = Receiver::new(&bench, |_| 0);
    drain(&bench, &receiver, config("")).await;
    let first = receiver.got()[0].clone();
    let bench = bench.after_a_kill().await;
    let receiver = Receiver::new(&bench, |_| 200);
    drain(&bench, &receiver, config("gzip = true")).await;
    assert_ne!(receiver.got()[0].key, first.key);
}

#[tokio::test]
async fn a_wait_is_kept_to_also_over_a_restart() {
    let bench = Bench::new().await;
    put(&bench, 1..=2).await;
    let told = vec![("retry-after".to_owned(), "90".to_owned())];
    let mut times = 0;
    let receiver = Receiver::with_headers(&bench, move |_| {
        times += 1;
        if times == 1 {
            (429, told.clone())
        } else {
            (200, Vec::new())
        }
    });
    assert_eq!(drain(&bench, &receiver, config("")).await, Ended::Drained);
    let got = receiver.got();
    let waited = got[1].at - got[0].at;
    assert!(
        (90..=100).contains(&waited.as_secs()),
        "not early, and late by little: {waited:?}"
    );

    // Told, and killed while it waits.
    put(&bench, 3..=3).await;
    let told = vec![("retry-after".to_owned(), "3600".to_owned())];
    let (mode, began) = (bench.mode.clone(), bench.clock.monotonic());
    let receiver = Receiver::with_headers(&bench, move |_| {
        mode.send_replace(Mode::Stop);
        (503, told.clone())
    });
    assert_eq!(drain(&bench, &receiver, config("")).await, Ended::Stopped);
    let intent = bench.store.intent("out").unwrap().unwrap();
    let until = intent.not_before.unwrap();
    assert!(until >= NOW + began.as_millis() as i64 + 3_600_000);
    // Half of the wait is still to come: a start must keep to it.
    let early = Arc::new(LeapingClock::default());
    early.sleep(began + Duration::from_secs(1_800)).await;
    let bench = bench.after_a_kill_on(early).await;
    let receiver = Receiver::new(&bench, |_| 200);
    assert_eq!(drain(&bench, &receiver, config("")).await, Ended::Drained);
    let got = receiver.got();
    assert_eq!((got.len(), got[0].ids()), (1, ids(3..=3)));
    assert!(NOW + got[0].at.as_millis() as i64 >= until);
}

#[tokio::test]
async fn case_149_a_batch_with_a_refused_record_is_split_until_it_is_found() {
    let bench = Bench::new().await;
    put(&bench, 1..=10).await;
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = taken.clone();
    let receiver = Receiver::new(&bench, move |got| {
        if got.ids().contains(&"5".to_owned()) {
            400
        } else {
            log.lock().unwrap().extend(got.ids());
            200
        }
    });
    assert_eq!(
        drain(
            &bench,
            &receiver,
            config("auth = { bearer = { env = \"TOKEN\" } }")
        )
        .await,
        Ended::Drained
    );
    let mut all = taken.lock().unwrap().clone();
    all.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(all, [ids(1..=4), ids(6..=10)].concat());
    let got = receiver.got();
    let alone: Vec<&Got> = got.iter().filter(|got| got.ids() == ["5"]).collect();
    assert_eq!(alone.len(), 6, "a bounded number of times");
    let gaps: Vec<_> = alone
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(gaps.is_sorted_by(|one, next| one < next), "{gaps:?}");
    assert!(
        alone.iter().all(|again| again.key == alone[0].key),
        "one record alone is one delivery"
    );
    assert!(
        got.len() < 6 + 10,
        "found by halves: {} requests",
        got.len()
    );
    let dead = bench.dead();
    assert_eq!(dead.len(), 1);
    assert_eq!(
        dead[0].error, "HTTP 400: no such field [secret]",
        "the sink's last word, without our secrets"
    );
}

#[tokio::test]
async fn a_credential_that_is_refused_stops_the_sink_at_once() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    put(&bench, 1..=50).await;
    let receiver = Receiver::new(&bench, |_| 401);
    let (status, running) = run(&bench, &receiver, config("")).await;
    let seen = stopped(status).await;
    assert!(seen.contains("HTTP 401"), "{seen}");
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(receiver.got().len(), 1);
    assert_eq!((bench.dead(), bench.waiting()), (Vec::new(), 50));
}

#[tokio::test]
async fn an_address_that_is_gone_stops_the_sink_after_few_tries() {
    for status in [403, 404, 410, 307] {
        let bench = Bench::new().await;
        bench.mode.send_replace(Mode::Run);
        put(&bench, 1..=500).await;
        let receiver = Receiver::new(&bench, move |_| status);
        let (watched, running) = run(&bench, &receiver, config("")).await;
        let seen = stopped(watched).await;
        assert!(seen.contains(&format!("HTTP {status}")), "{seen}");
        bench.mode.send_replace(Mode::Stop);
        assert_eq!(running.await.unwrap(), Ended::Stopped);
        assert!(receiver.got().len() <= 12, "{}", receiver.got().len());
        assert_eq!(bench.dead(), []);
    }
}

async fn run(
    bench: &Bench,
    receiver: &Arc<Receiver>,
    config: Webhook,
) -> (
    watch::Receiver<crate::sink::DeliveryStatus>,
    tokio::task::JoinHandle<Ended>,
) {
    let delivery = bench.deliver_to(sink(bench, receiver, config), DeliverySettings::default());
    let status = delivery.status();
    (status, tokio::spawn(delivery.run(bench.mode.subscribe())))
}

/// Waits until the sink is left alone; why.
async fn stopped(mut status: watch::Receiver<crate::sink::DeliveryStatus>) -> String {
    let stopped = status.wait_for(|status| {
        let failing = status.failing.as_ref();
        failing.is_some_and(|failing| failing.next.is_none())
    });
    let seen = stopped.await.unwrap().failing.clone();
    seen.unwrap().error
}

#[test]
fn a_debugged_configuration_shows_no_secret() {
    let config = config("headers = { X-Key = { env = \"TOKEN\" } }");
    let text = format!("{config:?}");
    assert!(
        !text.contains("tok_XYZ9") && !text.contains("a%20b"),
        "{text}"
    );
    assert!(text.contains("https://ingest.example.test"), "{text}");
    assert_eq!(config.batch, Batch::default());
}
