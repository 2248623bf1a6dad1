//! A vendor that answers from a script, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir::clock::BoxFuture;
use weir::http::{HttpRequest, HttpResponse, Transport, TransportError};

use super::clock::TestClock;

/// One answer of the script.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The call fails instead.
    pub error: Option<TransportError>,
    /// How long it takes, in ms.
    pub takes: i64,
}

impl Reply {
    /// 200 with this body.
    pub fn ok(body: impl Into<String>) -> Reply {
        Reply::status(200, body)
    }

    pub fn status(status: u16, body: impl Into<String>) -> Reply {
        Reply {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.into(),
            error: None,
            takes: 0,
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers
            .push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    pub fn taking(mut self, ms: i64) -> Reply {
        self.takes = ms;
        self
    }

    /// No connection.
    pub fn refused() -> Reply {
        let mut reply = Reply::status(0, "");
        reply.error = Some(TransportError::Connect {
            host: "api.example.test:443".into(),
            detail: "connection refused".into(),
        });
        reply
    }

    /// The answer broke off.
    pub fn broken() -> Reply {
        let mut reply = Reply::status(0, "");
        reply.error = Some(TransportError::Broken {
            host: "api.example.test:443".into(),
            detail: "10000 bytes were announced and 19 came".into(),
        });
        reply
    }
}

/// What was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When, by the wall clock.
    pub at: i64,
    /// The body as text; empty without one.
    pub body: String,
    /// The URL, with its query.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub secret_headers: Vec<(String, String)>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

type Answer = Box<dyn FnMut(&Asked) -> Reply + Send>;

/// The vendor.
pub struct Script {
    clock: Mutex<Option<Arc<TestClock>>>,
    queue: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Option<Answer>>,
    asked: Mutex<Vec<Asked>>,
}

impl Script {
    /// Answers in this order; then it has nothing to say, which fails the test.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Script> {
        Arc::new(Script {
            clock: Mutex::default(),
            queue: Mutex::new(replies.into_iter().collect()),
            otherwise: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    /// Answers by what is asked.
    pub fn by(answer: impl FnMut(&Asked) -> Reply + Send + 'static) -> Arc<Script> {
        let script = Script::new([]);
        *script.otherwise.lock().unwrap() = Some(Box::new(answer));
        script
    }

    /// Calls take time on this clock and are noted with it.
    pub fn on(&self, clock: &Arc<TestClock>) {
        *self.clock.lock().unwrap() = Some(clock.clone());
    }

    /// More answers.
    pub fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        self.queue.lock().unwrap().extend(replies);
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Transport for Script {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let clock = self.clock.lock().unwrap().clone();
        let asked = Asked {
            at: clock.as_ref().map_or(0, |clock| clock.wall_now()),
            body: String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()).into_owned(),
            url: request.url.to_string(),
            headers: request.headers.clone(),
            secret_headers: request.secret_headers.clone(),
        };
        let scripted = self.queue.lock().unwrap().pop_front();
        let reply = scripted.unwrap_or_else(|| {
            let mut otherwise = self.otherwise.lock().unwrap();
            let answer = otherwise.as_mut();
            answer.unwrap_or_else(|| panic!("the script has no answer to {}", asked.url))(&asked)
        });
        self.asked.lock().unwrap().push(asked);
        Box::pin(async move {
            if let Some(clock) = &clock
                && reply.takes > 0
            {
                clock.advance(reply.takes);
            }
            match reply.error {
                Some(error) => Err(error),
                None => Ok(HttpResponse {
                    status: reply.status,
                    headers: reply.headers,
                    body: reply.body.into(),
                    elapsed: Duration::from_millis(reply.takes.unsigned_abs()),
                }),
            }
        })
    }
}
