use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use url::Url;
use weir_rules::model::Class;

use super::limits;
use crate::clock::BoxFuture;
use crate::config::{Auth, Secret};
use crate::http::credentials::{AuthScheme, Credential};
use crate::http::exchange::{Answer, Ask, Endpoint, Exchange, ExchangeError, MAX_REDIRECTS};
use crate::http::guard::{Origin, Target};
use crate::http::{HttpRequest, HttpResponse, Transport, TransportError};

/// Answers from a list, the last one for ever, and keeps what was sent.
struct Script {
    answers: Vec<HttpResponse>,
    sent: Mutex<Vec<HttpRequest>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = HttpResponse>) -> Self {
        Script {
            answers: answers.into_iter().collect(),
            sent: Mutex::default(),
        }
    }

    fn urls(&self) -> Vec<String> {
        self.sent
            .lock()
            .unwrap()
            .iter()
            .map(|sent| sent.url.to_string())
            .collect()
    }

    /// All that was sent in one request, as text.
    fn text(&self, at: usize) -> String {
        let sent = self.sent.lock().unwrap();
        format!(
            "{} {:?} {:?}",
            sent[at].url, sent[at].headers, sent[at].secret_headers
        )
    }
}

impl Transport for Script {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let mut sent = self.sent.lock().unwrap();
        let answer = self.answers[sent.len().min(self.answers.len() - 1)].clone();
        sent.push(request);
        Box::pin(async move { Ok(answer) })
    }
}

fn answer(status: u16, headers: &[(&str, &str)]) -> HttpResponse {
    HttpResponse {
        status,
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: Bytes::from_static(b"[]"),
        elapsed: Duration::from_millis(10),
    }
}

fn redirect(to: &str) -> HttpResponse {
    answer(302, &[("location", to)])
}

fn ask(path: &str) -> Ask {
    Ask {
        method: "GET",
        target: Target::Path(path.to_owned()),
        query: Vec::new(),
        headers: vec![
            ("accept".to_owned(), "application/json".to_owned()),
            ("x-mine".to_owned(), "1".to_owned()),
        ],
        body: None,
    }
}

struct Vendor {
    origin: Origin,
    credential: Credential,
}

impl Vendor {
    fn new(base: &str, auth: &Auth, scheme: AuthScheme) -> Self {
        Vendor {
            origin: Origin::new("{u}", &json!({ "u": base }), false, false).unwrap(),
            credential: Credential::new(auth, &[scheme]).unwrap(),
        }
    }

    fn bearer() -> Self {
        Self::new(
            "https://api.example.test",
            &Auth::Bearer(Secret::new("tok_XYZ")),
            AuthScheme::Bearer,
        )
    }

    fn query() -> Self {
        let auth = Auth::Query {
            name: None,
            value: Secret::new("S3CR3T-9f2"),
        };
        Self::new(
            "https://api.example.test",
            &auth,
            AuthScheme::Query("api_key".into()),
        )
    }

    fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            origin: &self.origin,
            credential: &self.credential,
            user_agent: "weir/test",
        }
    }

    async fn send(&self, ask: Ask, script: &Script) -> Result<Answer, ExchangeError> {
        let etag = [("if-none-match".to_owned(), "\"e1\"".to_owned())];
        Exchange::new(self.endpoint(), ask, None)?
            .send(script, &etag, limits(), &mut 0)
            .await
    }
}

#[tokio::test]
async fn credentials_and_validators_are_added_at_home() {
    let script = Script::new([answer(304, &[("set-cookie", "a=b"), ("etag", "\"e1\"")])]);
    let answer = Vendor::bearer().send(ask("orders"), &script).await.unwrap();
    let sent = script.text(0);
    for part in [
        "https://api.example.test/orders ",
        "Bearer tok_XYZ",
        "\"if-none-match\", \"\\\"e1\\\"\"",
        "weir/test",
        "x-mine",
    ] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
    assert_eq!(answer.response.status, 304);
    assert_eq!(
        answer.response.headers,
        [("etag".to_owned(), "\"e1\"".to_owned())]
    );
}

#[tokio::test]
async fn a_secret_in_the_query_is_sent_and_leaves_no_trace() {
    let script = Script::new([answer(200, &[])]);
    let vendor = Vendor::query();
    let mut asked = ask("");
    asked.target = Target::Link("https://api.example.test/orders?page=2&api_key=stale".into());
    let exchange = Exchange::new(vendor.endpoint(), asked, None).unwrap();
    assert_eq!(
        exchange.url().as_str(),
        "https://api.example.test/orders?page=2"
    );
    let answer = exchange.send(&script, &[], limits(), &mut 0).await.unwrap();
    assert_eq!(
        script.urls(),
        ["https://api.example.test/orders?page=2&api_key=S3CR3T-9f2"]
    );
    assert_eq!(
        answer.url.as_str(),
        "https://api.example.test/orders?page=2"
    );
    assert!(!format!("{exchange:?} {answer:?}").contains("S3CR3T"));
}

#[tokio::test]
async fn case_093_credentials_do_not_follow_a_redirect_to_another_origin() {
    for elsewhere in [
        "https://files.example.invalid/x",
        "https://api.example.test:8443/x",
        "https://sub.api.example.test/x",
    ] {
        let script = Script::new([redirect(elsewhere), answer(200, &[])]);
        let answer = Vendor::bearer().send(ask("export"), &script).await.unwrap();
        assert_eq!(answer.response.status, 200);
        assert_eq!(answer.url.as_str(), elsewhere);
        assert_eq!(answer.response.elapsed, Duration::from_millis(20));
        let sent = script.text(1);
        assert!(
            sent.contains("accept") && sent.contains("weir/test"),
            "{sent}"
        );
        for part in ["tok_XYZ", "authorization", "if-none-match", "x-mine"] {
            assert!(!sent.contains(part), "{part} in {sent}");
        }
    }
}

#[tokio::test]
async fn credentials_do_not_come_back_with_the_redirects() {
    let script = Script::new([
        redirect("https://files.example.invalid/x"),
        redirect("https://api.example.test/delete-everything"),
        answer(200, &[]),
    ]);
    Vendor::bearer().send(ask("export"), &script).await.unwrap();
    assert!(!script.text(2).contains("tok_XYZ"));
}

#[tokio::test]
async fn a_redirect_that_echoes_the_secret_is_cleaned() {
    let script = Script::new([
        redirect("https://files.example.invalid/x?api_key=S3CR3T-9f2&v=1"),
        answer(200, &[]),
    ]);
    let answer = Vendor::query().send(ask("export"), &script).await.unwrap();
    assert_eq!(script.urls()[1], "https://files.example.invalid/x?v=1");
    assert_eq!(answer.url.as_str(), "https://files.example.invalid/x?v=1");
}

#[tokio::test]
async fn a_redirect_at_home_keeps_everything() {
    let script = Script::new([
        redirect("/v2/orders?page=1"),
        redirect("http://api.example.test/v3"),
        answer(200, &[]),
    ]);
    Vendor::bearer().send(ask("orders"), &script).await.unwrap();
    assert_eq!(
        script.urls(),
        [
            "https://api.example.test/orders",
            "https://api.example.test/v2/orders?page=1",
            "https://api.example.test/v3"
        ]
    );
    assert!(script.text(2).contains("tok_XYZ") && script.text(2).contains("if-none-match"));
}

#[tokio::test]
async fn an_endless_redirect_ends() {
    let script = Script::new([redirect("/login?token=S3CR3T-9f2")]);
    let error = Vendor::bearer()
        .send(ask("orders"), &script)
        .await
        .unwrap_err();
    assert!(matches!(error, ExchangeError::Endless { .. }), "{error}");
    assert_eq!(script.urls().len(), MAX_REDIRECTS + 1);
    assert_eq!(
        (error.class(), error.code()),
        (Class::Temporary, "redirect")
    );
    assert!(!format!("{error} {error:?}").contains("S3CR3T"));
}

#[tokio::test]
async fn redirects_that_lead_out_of_https_or_inwards_are_not_followed() {
    for bad in [
        "http://files.example.invalid/x?k=S3CR3T",
        "ftp://files.example.invalid/",
        "https://u:S3CR3T@files.example.invalid/",
        "http://127.0.0.1/",
        "http://[",
        "data:,S3CR3T",
    ] {
        let script = Script::new([redirect(bad), answer(200, &[])]);
        let error = Vendor::bearer()
            .send(ask("export"), &script)
            .await
            .unwrap_err();
        assert!(
            matches!(error, ExchangeError::Redirect { .. }),
            "{bad}: {error}"
        );
        assert_eq!(script.urls().len(), 1);
        assert!(!format!("{error}").contains("S3CR3T"), "{error}");
    }
    // Over https the name is followed; the transport vets its address by the origin's policy.
    let script = Script::new([redirect("https://localhost/"), answer(200, &[])]);
    Vendor::bearer().send(ask("export"), &script).await.unwrap();
    let policy = script.sent.lock().unwrap()[1].addresses;
    assert!(!policy.loopback && !policy.private);
}

#[tokio::test]
async fn only_reading_calls_are_redirected() {
    let script = Script::new([redirect("/elsewhere")]);
    let post = Ask {
        method: "POST",
        body: Some(Bytes::from_static(b"{}")),
        ..ask("report")
    };
    let answer = Vendor::bearer().send(post, &script).await.unwrap();
    assert_eq!((answer.response.status, script.urls().len()), (302, 1));
    let script = Script::new([answer_without_location(), answer_without_location()]);
    assert_eq!(
        Vendor::bearer()
            .send(ask("x"), &script)
            .await
            .unwrap()
            .response
            .status,
        302
    );
}

fn answer_without_location() -> HttpResponse {
    answer(302, &[])
}

#[tokio::test]
async fn every_request_counts_and_the_time_left_shrinks() {
    let script = Script::new([redirect("/a"), redirect("/b"), answer(200, &[])]);
    let vendor = Vendor::bearer();
    let mut calls = 4;
    let exchange = Exchange::new(vendor.endpoint(), ask("x"), None).unwrap();
    exchange
        .send(&script, &[], limits(), &mut calls)
        .await
        .unwrap();
    assert_eq!(calls, 7);
    let left: Vec<_> = script
        .sent
        .lock()
        .unwrap()
        .iter()
        .map(|sent| limits().total - sent.limits.total)
        .collect();
    assert_eq!(left, [0, 10, 20].map(Duration::from_millis));
}

#[test]
fn a_connector_cannot_speak_for_the_host() {
    let auth = Auth::Header {
        name: None,
        value: Secret::new("k_123456"),
    };
    let vendor = Vendor::new(
        "https://api.example.test",
        &auth,
        AuthScheme::Header("X-Api-Key".into()),
    );
    let mut asked = ask("x");
    asked.headers = ["Authorization", "X-API-KEY", "Host", "Cookie"]
        .map(|name| (name.to_owned(), "forged".to_owned()))
        .to_vec();
    let exchange = Exchange::new(vendor.endpoint(), asked, None).unwrap();
    assert!(!format!("{exchange:?}").contains("forged"));
    let mut split = ask("x");
    split.headers = vec![("x-a".to_owned(), "1\r\nhost: evil.test".to_owned())];
    let error = Exchange::new(vendor.endpoint(), split, None).unwrap_err();
    assert_eq!(error.class(), Class::Permanent);
}

#[test]
fn a_fingerprint_names_the_exact_call() {
    let of = |vendor: &Vendor, asked: Ask| {
        Exchange::new(vendor.endpoint(), asked, None)
            .unwrap()
            .fingerprint()
    };
    let vendor = Vendor::bearer();
    let same = of(&vendor, ask("orders"));
    let mut swapped = ask("orders");
    swapped.headers.reverse();
    assert_eq!(same, of(&vendor, swapped));
    let other_credential = Vendor::new(
        "https://api.example.test",
        &Auth::Bearer(Secret::new("tok_ABC")),
        AuthScheme::Bearer,
    );
    let mut paged = ask("orders");
    paged.query = vec![("page".to_owned(), "2".to_owned())];
    let mut accepting = ask("orders");
    accepting.headers[0].1 = "text/csv".to_owned();
    for other in [
        of(&other_credential, ask("orders")),
        of(&vendor, paged),
        of(&vendor, accepting),
        of(&vendor, ask("order")),
    ] {
        assert_ne!(same, other);
    }
}

#[test]
fn a_relative_link_needs_to_know_its_page() {
    let vendor = Vendor::bearer();
    let from = Url::parse("https://api.example.test/v1/orders?page=1").unwrap();
    let mut asked = ask("");
    asked.target = Target::Link("?page=2".into());
    let exchange = Exchange::new(vendor.endpoint(), asked, Some(&from)).unwrap();
    assert_eq!(
        exchange.url().as_str(),
        "https://api.example.test/v1/orders?page=2"
    );
}
