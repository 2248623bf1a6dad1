//! Tokens that expire, are refused, are lost on their way, or are not to be had.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use support::clock::TestClock;
use support::script::Reply;
use support::shop::{HOUR, MIN, S};
use support::{NOW, Rig};
use tokio::sync::Barrier;
use weir::clock::BoxFuture;
use weir::http::{HttpRequest, HttpResponse, Transport, TransportError};
use weir::poll::Outcome;
use weir_rules::model::Class;

/// A vendor with an API and a token endpoint that takes each refresh token once. A second use of one is theft: it
/// revokes all that came of it.
struct World {
    clock: Arc<TestClock>,
    books: Mutex<Books>,
    /// Calls that come with this access token wait for each other.
    together: Mutex<Option<(String, Arc<Barrier>)>>,
}

#[derive(Default)]
struct Books {
    /// The refresh token that is good now.
    refresh: String,
    /// The access token that is good now.
    access: String,
    /// Tokens that were given.
    given: u32,
    revoked: bool,
    /// In seconds; not said when there is none.
    lifetime: Option<u64>,
    /// When the access token runs out.
    expires: Option<i64>,
    /// The last refresh token is taken a second time.
    lenient: bool,
    /// Vendors that do not rotate say nothing of the refresh token.
    keeps_refresh: bool,
    /// What the token endpoint answers instead, in order.
    token_trouble: Vec<Trouble>,
    /// What the API answers instead, in order.
    api_trouble: Vec<Reply>,
    /// Nothing is heard from here on.
    hold: Option<Place>,
    /// When the token endpoint was called, and with what.
    token_calls: Vec<(i64, BTreeMap<String, String>)>,
    /// When the API was called, with which token, and what it answered.
    api_calls: Vec<(i64, String, u16)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A call to the API does not leave the host.
    Api,
    /// The token endpoint's answer does not arrive.
    TokenAnswer,
}

enum Trouble {
    /// This is its answer.
    Says(Reply),
    /// It gave tokens; the answer is lost.
    AnswerLost,
    /// It is not reached.
    Unreachable,
    /// It hangs, and has done nothing.
    Hangs,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            clock: Arc::new(TestClock::new(NOW)),
            books: Mutex::new(Books {
                refresh: "rt_0".into(),
                ..Books::default()
            }),
            together: Mutex::default(),
        })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    async fn rig(self: &Arc<World>, config: &str) -> Rig {
        Rig::on_clock(config, self.clone(), self.clock.clone()).await
    }

    fn token_calls(&self) -> usize {
        self.books().token_calls.len()
    }

    /// The refresh tokens that were sent, in order.
    fn refreshes(&self) -> Vec<String> {
        let books = self.books();
        let sent = books.token_calls.iter();
        sent.filter_map(|(_, form)| form.get("refresh_token").cloned())
            .collect()
    }

    fn statuses(&self) -> Vec<u16> {
        self.books().api_calls.iter().map(|call| call.2).collect()
    }
}

impl Books {
    fn token(&mut self, at: i64, form: BTreeMap<String, String>) -> Result<Reply, TransportError> {
        let refresh = form.get("refresh_token").cloned();
        self.token_calls.push((at, form));
        let lost = match self.token_trouble.is_empty() {
            true => false,
            false => match self.token_trouble.remove(0) {
                Trouble::Says(reply) => return Ok(reply),
                Trouble::Unreachable => {
                    return Err(TransportError::Connect {
                        host: "id.example.test".into(),
                        detail: "connection refused".into(),
                    });
                }
                Trouble::Hangs => {
                    return Err(TransportError::Timeout {
                        host: "id.example.test".into(),
                        after: Duration::from_secs(30),
                    });
                }
                Trouble::AnswerLost => true,
            },
        };
        if let Some(refresh) = refresh
            && refresh != self.refresh
            && !std::mem::take(&mut self.lenient)
        {
            self.revoked = true;
        }
        if self.revoked {
            self.access = String::new();
            return Ok(refused("invalid_grant"));
        }
        self.given += 1;
        self.access = format!("at_{}", self.given);
        let mut body = serde_json::json!({"access_token": self.access, "token_type": "Bearer"});
        if !self.keeps_refresh {
            self.refresh = format!("rt_{}", self.given);
            body["refresh_token"] = self.refresh.clone().into();
        }
        if let Some(lifetime) = self.lifetime {
            body["expires_in"] = lifetime.into();
            self.expires = Some(at + i64::try_from(lifetime).unwrap() * S);
        }
        match lost {
            true => Err(TransportError::Broken {
                host: "id.example.test".into(),
                detail: "the connection was reset".into(),
            }),
            false => Ok(Reply::ok(body.to_string())),
        }
    }

    fn api(&mut self, at: i64, token: String) -> Reply {
        let good = token == self.access && self.expires.is_none_or(|expires| at < expires);
        let reply = match good {
            _ if !self.api_trouble.is_empty() => self.api_trouble.remove(0),
            true => Reply::ok(r#"{"orders":[{"id":"1","at":"2031-03-04T09:00:00Z"}]}"#),
            false => Reply::status(401, r#"{"error":"expired"}"#),
        };
        self.api_calls.push((at, token, reply.status));
        reply
    }
}

fn refused(code: &str) -> Reply {
    Reply::status(
        400,
        format!(r#"{{"error":"{code}","error_description":"it said so"}}"#),
    )
}

fn answer(reply: Reply) -> HttpResponse {
    HttpResponse {
        status: reply.status,
        headers: reply.headers,
        body: reply.body.into(),
        elapsed: Duration::ZERO,
    }
}

impl Transport for World {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let at = self.clock.wall_now();
        let authorization = request
            .secret_headers
            .iter()
            .find(|(name, _)| name == "authorization")
            .map(|(_, value)| value.clone())
            .unwrap_or_default();
        Box::pin(async move {
            if request.url.path() == "/token" {
                let form = request.body.clone().unwrap_or_default();
                let form = url::form_urlencoded::parse(&form).into_owned().collect();
                assert_eq!((request.method, request.url.query()), ("POST", None));
                assert!(authorization.starts_with("Basic "));
                let (reply, held) = {
                    let mut books = self.books();
                    let reply = books.token(at, form);
                    (reply, books.hold == Some(Place::TokenAnswer))
                };
                if held {
                    std::future::pending::<()>().await;
                }
                return reply.map(answer);
            }
            let token = authorization.replace("Bearer ", "");
            let held = self.books().hold == Some(Place::Api);
            if held {
                std::future::pending::<()>().await;
            }
            let reply = self.books().api(at, token.clone());
            let together = self.together.lock().unwrap().clone();
            if let Some((held, barrier)) = together
                && held == token
            {
                barrier.wait().await;
            }
            Ok(answer(reply))
        })
    }
}

/// A connection whose credential is renewed; `auth` is what it says besides its client.
fn connection(name: &str, auth: &str) -> String {
    format!(
        r#"
[connection.{name}]
connector = "rest"
auth = {{ oauth2 = {{ client_id = "weir-42", client_secret = "s3cr3t-77", token_url = "https://id.example.test/token", {auth} }} }}

[connection.{name}.config]
base_url = "https://api.example.test/{name}"

[connection.{name}.config.streams.orders]
path = "/orders"
records = "/orders"
id = "/id"
updated_at = "/at"

[connection.{name}.streams.orders]
interval = {{ min = "1m", max = "1m" }}
backoff = {{ base = "1s", cap = "1m" }}
"#
    )
}

const FIRST: &str = r#"refresh_token = "rt_0""#;

/// Lets what is under way get as far as it can.
async fn breathe() {
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn case_133_two_who_are_refused_at_once_refresh_once_and_both_go_on() {
    let world = World::new();
    let both = [connection("a", FIRST), connection("b", FIRST)].concat();
    let rig = world.rig(&both).await;
    for unit in ["a/orders", "b/orders"] {
        assert_eq!(rig.poll(unit).await.outcome, Outcome::Ok);
    }
    assert_eq!(world.refreshes(), ["rt_0"], "they share it from the start");

    // The vendor takes the token no more, and answers neither before both have asked.
    world.books().access = "another".into();
    *world.together.lock().unwrap() = Some(("at_1".into(), Arc::new(Barrier::new(2))));
    let (a, b) = tokio::join!(rig.poll("a/orders"), rig.poll("b/orders"));
    assert_eq!(
        (a.outcome, b.outcome),
        (Outcome::Ok, Outcome::Ok),
        "{a:?} {b:?}"
    );
    assert_eq!(world.statuses(), [200, 200, 401, 401, 200, 200]);
    assert_eq!(world.refreshes(), ["rt_0", "rt_1"], "each was sent once");
    assert!(!world.books().revoked);
    assert!(rig.host.sign_in.all().is_empty());
    assert_eq!(a.tally.calls, 2, "the refused call counts too");
}

#[tokio::test]
async fn many_units_that_need_a_token_at_once_get_one() {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let config: String = names.iter().map(|name| connection(name, FIRST)).collect();
    let rig = world.rig(&config).await;
    rig.run_for(5_000).await;
    assert_eq!(world.refreshes(), ["rt_0"]);
    assert_eq!(world.statuses(), vec![200; 20]);
}

#[tokio::test]
async fn a_crash_between_the_answer_and_its_first_use_loses_nothing() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    world.books().hold = Some(Place::Api);
    let unit = rig.unit("a/orders").id;
    let (_, report) = rig
        .host
        .scheduler
        .ask(unit, weir_rules::model::Reason::Schedule);
    breathe().await;
    assert_eq!(world.refreshes(), ["rt_0"]);
    assert!(world.books().api_calls.is_empty(), "it was not used yet");
    let rig = rig.crash().await;
    drop(report);

    world.books().hold = None;
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::Ok);
    assert_eq!(world.token_calls(), 1, "the token that was stored is used");
    world.books().access = "another".into();
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::Ok);
    assert_eq!(world.refreshes(), ["rt_0", "rt_1"]);
}

#[tokio::test]
async fn a_crash_before_the_answer_is_told_as_what_it_is() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    world.books().hold = Some(Place::TokenAnswer);
    let unit = rig.unit("a/orders").id;
    let (_, report) = rig
        .host
        .scheduler
        .ask(unit, weir_rules::model::Reason::Schedule);
    breathe().await;
    assert_eq!(world.refreshes(), ["rt_0"]);
    let rig = rig.crash().await;
    drop(report);

    world.books().hold = None;
    let report = rig.poll("a/orders").await;
    assert_eq!(report.outcome, Outcome::NeedsSignIn);
    let why = rig.host.sign_in.needed("a").unwrap();
    assert!(why.contains("lost on its way"), "{why}");
    assert_eq!(world.refreshes(), ["rt_0", "rt_0"], "no more than that");
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_once_more() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    {
        // A vendor that knows of lost answers takes the old token a second time.
        let mut books = world.books();
        books.token_trouble = vec![Trouble::AnswerLost];
        books.lenient = true;
    }
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::Ok);
    assert_eq!(world.refreshes(), ["rt_0", "rt_0"]);
    assert!(!world.books().revoked);
}

#[tokio::test]
async fn a_lost_answer_that_the_vendor_does_not_give_again_needs_a_sign_in_and_says_why() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    world.books().token_trouble = vec![Trouble::AnswerLost];
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::NeedsSignIn);
    let why = rig.host.sign_in.needed("a").unwrap();
    assert!(
        why.contains("lost on its way") && why.contains("the connection was reset"),
        "{why}"
    );
    rig.run_for(HOUR.unsigned_abs()).await;
    assert_eq!(
        world.refreshes(),
        ["rt_0", "rt_0"],
        "nothing is asked any more"
    );
}

#[tokio::test]
async fn an_invalid_grant_needs_a_sign_in_at_once_for_all_who_share_it() {
    let world = World::new();
    let both = [connection("a", FIRST), connection("b", FIRST)].concat();
    let rig = world.rig(&both).await;
    world.books().token_trouble = vec![Trouble::Says(refused("invalid_grant"))];
    for unit in ["a/orders", "b/orders"] {
        assert_eq!(rig.poll(unit).await.outcome, Outcome::NeedsSignIn);
    }
    rig.run_for(HOUR.unsigned_abs()).await;
    assert_eq!(world.token_calls(), 1);
    let why = rig.host.sign_in.needed("b").unwrap();
    assert!(
        why.contains("invalid_grant") && !why.contains("lost"),
        "{why}"
    );

    // Another refresh token in the configuration is a sign-in.
    world.books().refresh = "rt_9".into();
    let new = r#"refresh_token = "rt_9""#;
    let both = [connection("a", new), connection("b", new)].concat();
    let rig = rig.restart_with(&both).await;
    assert!(rig.host.sign_in.all().is_empty());
    for unit in ["a/orders", "b/orders"] {
        assert_eq!(rig.poll(unit).await.outcome, Outcome::Ok);
    }
}

#[tokio::test]
async fn a_token_that_is_refused_when_it_is_new_needs_a_sign_in() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    let expired = || Reply::status(401, "{}");
    world.books().api_trouble = vec![expired(), expired(), expired(), expired()];
    let report = rig.poll("a/orders").await;
    assert_eq!(report.outcome, Outcome::NeedsSignIn, "{report:?}");
    assert_eq!(world.refreshes(), ["rt_0", "rt_1"], "renewed once");
    assert_eq!(world.statuses(), [401, 401]);
}

#[tokio::test]
async fn after_a_long_wait_a_token_that_has_expired_meanwhile_is_refreshed_first() {
    let world = World::new();
    world.books().lifetime = Some(3_600);
    let rig = world.rig(&connection("a", FIRST)).await;
    rig.poll("a/orders").await;
    let wait = Reply::status(429, "{}").header("retry-after", "7200");
    world.books().api_trouble = vec![wait];
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::Waiting);
    rig.run_for((2 * HOUR + 5 * MIN).unsigned_abs()).await;
    let statuses = world.statuses();
    assert_eq!(statuses[..2], [200, 429]);
    assert!(
        statuses.len() > 2 && statuses[2..].iter().all(|status| *status == 200),
        "no call was made with the old token: {statuses:?}"
    );
    let books = world.books();
    let second = books.token_calls[1].0 - NOW;
    assert!(
        second >= 2 * HOUR,
        "nothing is asked while the vendor wants a pause: {second}"
    );
    assert_eq!(books.token_calls[1].1["refresh_token"], "rt_1");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_runs_out() {
    let world = World::new();
    world.books().lifetime = Some(3_600);
    let rig = world.rig(&connection("a", FIRST)).await;
    rig.run_for((10 * HOUR).unsigned_abs()).await;
    assert!(world.statuses().iter().all(|status| *status == 200));
    let books = world.books();
    let gaps: Vec<i64> = books
        .token_calls
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    // A tenth of an hour before its end, at the next poll.
    assert!(
        gaps.len() >= 10 && gaps.iter().all(|gap| (54 * MIN..=56 * MIN).contains(gap)),
        "{gaps:?}"
    );
    let sent: Vec<String> = (0..books.token_calls.len())
        .map(|n| format!("rt_{n}"))
        .collect();
    drop(books);
    assert_eq!(world.refreshes(), sent, "each was sent once");
}

#[tokio::test]
async fn a_token_endpoint_that_is_down_is_left_alone_for_longer_and_longer_and_needs_nobody() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    for n in 0..400 {
        let trouble = match n % 3 {
            0 => Trouble::Says(Reply::status(503, "{}")),
            1 => Trouble::Unreachable,
            _ => Trouble::Says(Reply::status(500, r#"{"error":"server_error"}"#)),
        };
        world.books().token_trouble.push(trouble);
    }
    rig.run_for((6 * HOUR).unsigned_abs()).await;
    let calls = world.token_calls();
    assert!((5..80).contains(&calls), "{calls}");
    assert!(world.books().api_calls.is_empty());
    assert!(rig.host.sign_in.all().is_empty());
    let last = rig.polls().pop().unwrap();
    assert_eq!(last.class, Some(Class::Temporary), "{last:?}");
    assert!(
        rig.polls().len() < 2 * calls + 10,
        "no poll is begun for nothing: {} for {calls}",
        rig.polls().len()
    );

    world.books().token_trouble.clear();
    rig.run_for((31 * MIN).unsigned_abs()).await;
    assert_eq!(world.refreshes().last().unwrap(), "rt_0");
    assert_eq!(world.statuses().first(), Some(&200));
}

#[tokio::test]
async fn timeouts_of_the_token_endpoint_need_nobody() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    world.books().token_trouble = (0..10).map(|_| Trouble::Hangs).collect();
    rig.run_for(HOUR.unsigned_abs()).await;
    assert!(rig.host.sign_in.all().is_empty());
    assert!(world.statuses().contains(&200));
}

#[tokio::test]
async fn a_wait_that_the_token_endpoint_asks_for_is_kept() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    let busy = Reply::status(429, r#"{"message":"Too Many Requests","error":429}"#)
        .header("retry-after", "1800");
    world.books().token_trouble = vec![Trouble::Says(busy)];
    let report = rig.poll("a/orders").await;
    assert_eq!(report.outcome, Outcome::Waiting, "{report:?}");
    rig.run_for((29 * MIN).unsigned_abs()).await;
    // A person who asks does not hurry it.
    let report = rig
        .ask("a/orders", weir_rules::model::Reason::SyncNow)
        .await;
    assert_eq!(report.outcome, Outcome::Waiting, "{report:?}");
    assert_eq!(world.token_calls(), 1);
    rig.run_for((3 * MIN).unsigned_abs()).await;
    assert_eq!(world.token_calls(), 2);
    assert!(world.statuses().contains(&200));
}

#[tokio::test]
async fn while_the_token_is_good_a_renewal_that_fails_holds_nothing_up() {
    let world = World::new();
    world.books().lifetime = Some(3_600);
    let rig = world.rig(&connection("a", FIRST)).await;
    rig.poll("a/orders").await;
    world.books().token_trouble = (0..50).map(|_| Trouble::Unreachable).collect();
    rig.run_for((58 * MIN).unsigned_abs()).await;
    assert!(world.token_calls() > 1, "it was tried");
    assert!(world.statuses().iter().all(|status| *status == 200));
    assert!(world.statuses().len() > 50);
    world.books().token_trouble.clear();
    rig.run_for(HOUR.unsigned_abs()).await;
    assert!(world.statuses().iter().all(|status| *status == 200));
}

#[tokio::test]
async fn an_app_asks_for_itself_and_uses_its_token_over_a_restart() {
    let world = World::new();
    world.books().keeps_refresh = true;
    world.books().lifetime = Some(3_600);
    let app = r#"grant = "client-credentials", scopes = ["read", "list"], params = { audience = "https://api.example.test" }"#;
    let rig = world.rig(&connection("a", app)).await;
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::Ok);
    let form = world.books().token_calls[0].1.clone();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(form["scope"], "read list");
    assert_eq!(form["audience"], "https://api.example.test");
    let rig = rig.crash().await;
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::Ok);
    assert_eq!(world.token_calls(), 1);

    world.books().token_trouble = vec![Trouble::Says(refused("invalid_client"))];
    world.books().access = "another".into();
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::NeedsSignIn);
    let why = rig.host.sign_in.needed("a").unwrap();
    assert!(why.contains("check client_id, client_secret"), "{why}");
}

#[tokio::test]
async fn a_refresh_token_that_is_not_rotated_is_used_again_and_again() {
    let world = World::new();
    world.books().keeps_refresh = true;
    world.books().lifetime = Some(600);
    let rig = world.rig(&connection("a", FIRST)).await;
    rig.run_for(HOUR.unsigned_abs()).await;
    assert!(world.token_calls() >= 6);
    assert!(world.refreshes().iter().all(|token| token == "rt_0"));
    assert!(world.statuses().iter().all(|status| *status == 200));
}

#[tokio::test]
async fn who_has_never_signed_in_is_told_how() {
    let world = World::new();
    let page = r#"authorize_url = "https://id.example.test/authorize""#;
    let rig = world.rig(&connection("a", page)).await;
    assert_eq!(rig.poll("a/orders").await.outcome, Outcome::NeedsSignIn);
    let needed = rig.host.sign_in.all().remove("a").unwrap();
    assert!(
        needed.why.contains("nobody has signed in yet"),
        "{}",
        needed.why
    );
    assert_eq!(needed.way_out("a"), "weir login a");
    assert_eq!(world.token_calls(), 0);
}

#[tokio::test]
async fn tokens_are_masked_and_never_stored_as_they_are() {
    let world = World::new();
    let rig = world.rig(&connection("a", FIRST)).await;
    let quote = Reply::status(404, r#"{"message":"no order for Bearer at_1 of rt_1"}"#);
    world.books().api_trouble = vec![quote];
    rig.poll("a/orders").await;
    let polls = format!("{:?}", rig.polls());
    assert!(polls.contains("[secret]"), "{polls}");
    for secret in ["at_1", "rt_1", "rt_0", "s3cr3t-77"] {
        assert!(!polls.contains(secret), "{polls}");
    }
}
