//! One call of a walk: the connector's request, the vendor's answer, and what both mean.

use weir_rules::conditional::{self, NotModified, Shape, Stamps, Tags};
use weir_rules::fault::{Signals, default_class, default_scope, says_limit};
use weir_rules::http_date::Anchor;
use weir_rules::limits;
use weir_rules::miad::{self, Miad};
use weir_rules::model::{Class, Fault, Limit, Reason, Scope, Timestamp};
use weir_rules::quiet::{self, Asked};
use weir_rules::wait;
use weir_runtime::contract::{self, Body, Request, Response};
use weir_runtime::{CallError, CallErrorKind};

use super::prepare::{Prepared, Reading, Wrong, prepare};
use super::run::{FaultSeen, Poll};
use super::shown::{Excerpt, request_line};
use crate::host::Host;
use crate::http::CallLimits;
use crate::http::credentials::Credential;
use crate::http::exchange::{Answer, Ask, Endpoint, Exchange, ExchangeError};
use crate::http::guard::{Origin, Target};
use crate::status::Latencies;
use crate::store::{BudgetKey, BudgetRow, ShownAnswer, StoreError, Validator, ValidatorKey};

/// Pages refused for their records in a row, after which a few such records are set aside whatever their share.
const PATIENCE: u32 = 3;

/// What came of a call that was made.
pub(super) struct Call {
    pub(super) read: Read,
    pub(super) seen: Answered,
}

/// What an answer costs and says, whatever it means.
pub(super) struct Answered {
    pub(super) calls: u32,
    pub(super) bytes: usize,
    /// The longest call's, in ms.
    pub(super) latency: u64,
    /// Those of all calls.
    pub(super) latencies: Latencies,
    /// How the last call went.
    call: miad::Call,
    pub(super) budgets: Vec<(BudgetKey, BudgetRow)>,
}

impl Answered {
    /// Nothing yet.
    pub(super) fn none() -> Answered {
        Answered {
            calls: 0,
            bytes: 0,
            latency: 0,
            latencies: Latencies::default(),
            call: miad::Call::Failed,
            budgets: Vec::new(),
        }
    }

    /// What an earlier answer to the same question cost and said.
    pub(super) fn add(&mut self, earlier: Answered) {
        self.calls = self.calls.saturating_add(earlier.calls);
        self.bytes += earlier.bytes;
        self.latency = self.latency.max(earlier.latency);
        self.latencies.merge(&earlier.latencies);
        self.budgets.splice(..0, earlier.budgets);
    }
}

/// What an answer means.
pub(super) enum Read {
    Page {
        prepared: Box<Prepared>,
        validator: Option<(ValidatorKey, Option<Validator>)>,
    },
    NotModified {
        key: ValidatorKey,
        validator: Validator,
    },
    Fault(Box<FaultSeen>),
}

/// Why no call could be made.
pub(super) enum CallFailed {
    Store(StoreError),
    Fault(Fault),
    /// The same was asked a moment ago.
    Repeat {
        until: Timestamp,
        why: String,
    },
}

impl From<StoreError> for CallFailed {
    fn from(error: StoreError) -> Self {
        CallFailed::Store(error)
    }
}

impl Poll<'_> {
    /// Lets the connector say what to ask for in this step.
    pub(super) async fn request(&self, step: Option<&str>) -> Result<Request, Fault> {
        let (connector, task) = (self.connection.connector.clone(), self.task.clone());
        let step = step.map(str::to_owned);
        let built = self
            .host
            .runtime
            .workers()
            .run(move || connector.build_request(&task, step.as_deref()))
            .await;
        match built {
            Ok(Ok(Ok(request))) => Ok(request),
            Ok(Ok(Err(fault))) => Err(self.masked(fault.into())),
            Ok(Err(error)) => Err(connector_fault(&error)),
            Err(gone) => Err(host_fault(gone.to_string())),
        }
    }

    /// Makes the call with this credential and reads the answer.
    pub(super) async fn call_as(
        &mut self,
        step: Option<&str>,
        request: &Request,
        origin: &Origin,
        credential: &Credential,
    ) -> Result<Call, CallFailed> {
        let connection = self.connection.clone();
        let endpoint = Endpoint {
            origin,
            credential,
            user_agent: &self.host.config.host.user_agent,
        };
        let mut asked = ask(request);
        if let Some(header) = &request.idempotency_header {
            let key = self.write_key(step, request).await?;
            asked
                .headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case(header));
            asked.headers.push((header.clone(), key));
        }
        let exchange = match Exchange::new(endpoint, asked, None) {
            Ok(exchange) => exchange.made_for(self.row.id),
            Err(error) => return Err(CallFailed::Fault(self.masked(exchange_fault(&error)))),
        };
        let key = ValidatorKey {
            unit: self.row.id,
            request: exchange.fingerprint(),
        };
        let is_first = step.is_none();
        if is_first {
            self.hold_back_repeat(&key)?;
        }
        let mut known = None;
        // A resync reads everything, whatever the vendor thinks we have. A side walk leaves the main walk's validators alone.
        let conditional = request.conditional && !self.side;
        if conditional && self.walk.reason != Reason::Resync {
            known = self.host.store.validator(&key)?;
        }
        let mut seen = Answered::none();
        let mut answer = self.send(&exchange, known.as_ref(), &mut seen).await;
        if let (Ok((answered, ..)), Some(validator)) = (&answer, &known)
            && answered.response.status == 304
        {
            let etag = answered.response.header("etag");
            // Not modified: whatever that call took, it was answered.
            self.felt(seen.call);
            match conditional::judge(Some(&tags(validator)), etag) {
                NotModified::Believed => {
                    self.answered_well(is_first, &key);
                    let read = Read::NotModified {
                        key,
                        validator: validator.clone(),
                    };
                    return Ok(Call { read, seen });
                }
                NotModified::AskPlainly => {
                    answer = self.send(&exchange, None, &mut seen).await;
                }
            }
        }
        let line = || request_line(method(request.method), exchange.url(), &connection.redactor);
        let (answer, anchor, limits) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.felt(miad::Call::Failed);
                self.state.asked = None;
                let fault = FaultSeen {
                    answer: Some(ShownAnswer {
                        request: line(),
                        ..ShownAnswer::default()
                    }),
                    ..FaultSeen::of(self.masked(exchange_fault(&error)))
                };
                return Ok(Call {
                    read: Read::Fault(Box::new(fault)),
                    seen,
                });
            }
        };
        let read = self
            .read(
                step,
                (answer, anchor, limits),
                conditional.then(|| key.clone()),
                &mut seen,
            )
            .await;
        let read = match read {
            Ok(read) => read,
            Err((mut fault, excerpt)) => {
                fault.answer = excerpt.map(|excerpt| excerpt.shown(line(), &connection.redactor));
                Read::Fault(Box::new(fault))
            }
        };
        match &read {
            Read::Fault(met) => {
                self.state.asked = None;
                self.felt(match met.fault.class {
                    Class::Incomplete => miad::Call::Failed,
                    _ => seen.call,
                });
            }
            _ => {
                self.answered_well(is_first, &key);
                self.felt(seen.call);
            }
        }
        Ok(Call { read, seen })
    }

    /// Sends, and takes in what every answer says: the vendor's clock, its limits, its latency.
    pub(super) async fn send(
        &mut self,
        exchange: &Exchange<'_>,
        validator: Option<&Validator>,
        seen: &mut Answered,
    ) -> Result<(Answer, Anchor, Vec<Limit>), ExchangeError> {
        let conditions: Vec<_> = validator
            .map(|validator| tags(validator).headers())
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let host = &self.host.config.host;
        let limits = CallLimits {
            connect: host.timeout.connect,
            idle: host.timeout.idle,
            total: host.timeout.total,
            body: host.max_body,
        };
        let clock = &self.host.clock;
        let (sent, began) = (clock.wall(), clock.monotonic());
        let answer = exchange
            .send(&*self.host.transport, &conditions, limits, &mut seen.calls)
            .await;
        let clock = &self.host.clock;
        let received = clock.wall();
        let took = clock.monotonic().saturating_sub(began);
        let latency = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        seen.latency = seen.latency.max(latency);
        seen.latencies.add(latency);
        seen.call = match &answer {
            Ok(answer) => miad::Call::answered(answer.response.status, latency),
            Err(_) => miad::Call::Failed,
        };
        let answer = answer?;
        seen.bytes += answer.response.body.len();
        let anchor = Anchor::of(&answer.response.headers, received);
        if let Some(date) = anchor.date {
            self.state.clock.observe(date, sent, received);
        }
        let reading = limits::read(&answer.response.headers, &anchor);
        for ignored in &reading.ignored {
            self.host
                .remarks
                .add(&self.connection.name, ignored, received);
        }
        let learnt = self.host.ledger.learn(self, &reading.limits, received);
        seen.budgets.extend(learnt);
        Ok((answer, anchor, reading.limits))
    }

    /// Takes in how a call went, at a vendor that publishes no limits.
    fn felt(&mut self, call: miad::Call) {
        if !self.stream.settings.unpublished_limits || self.side {
            return;
        }
        let before = std::mem::take(&mut self.state.miad);
        let was_pinned = before.is_pinned(&Miad::default());
        let stepped = miad::step(&Miad::default(), before, call);
        if stepped.pinned && !was_pinned {
            tracing::warn!(
                unit = %self.row.key,
                "the vendor is so slow, or refuses so often, that the unit's interval is at its ceiling"
            );
        }
        self.state.miad = stepped.state;
    }

    /// At a vendor without published limits nobody but the schedule asks for the same again at once.
    fn hold_back_repeat(&self, key: &ValidatorKey) -> Result<(), CallFailed> {
        if !self.stream.settings.unpublished_limits || self.walk.reason == Reason::Schedule {
            return Ok(());
        }
        let now = self.host.clock.wall();
        let Some(until) = quiet::repeats(self.state.asked, short(key), now) else {
            return Ok(());
        };
        let ago = now.abs_diff(self.state.asked.map_or(now, |asked| asked.at)) / 1_000;
        Err(CallFailed::Repeat {
            until,
            why: format!(
                "the same was asked {ago} s ago, and this vendor publishes no limits: it is not asked again within {} s",
                quiet::REPEAT / 1_000
            ),
        })
    }

    fn answered_well(&mut self, is_first: bool, key: &ValidatorKey) {
        if is_first && self.stream.settings.unpublished_limits {
            self.state.asked = Some(Asked {
                request: short(key),
                at: self.host.clock.wall(),
            });
        }
    }

    async fn read(
        &mut self,
        step: Option<&str>,
        (answer, anchor, mut found): (Answer, Anchor, Vec<Limit>),
        key: Option<ValidatorKey>,
        seen: &mut Answered,
    ) -> Result<Read, (FaultSeen, Option<Excerpt>)> {
        let status = answer.response.status;
        let signals = Signals {
            limit: found.iter().any(limits::is_spent)
                || (status >= 400 && says_limit(&answer.response.body)),
            retry_after: weir_rules::retry_after::read(&answer.response.headers, &anchor).is_some(),
        };
        let told_by_headers = signals.retry_after || found.iter().any(limits::is_spent);
        let headers = answer.response.headers.clone();
        let prepared = self.understand(step, answer).await;
        match prepared {
            Ok(prepared) => {
                let told: Vec<_> = prepared
                    .page
                    .limits
                    .iter()
                    .cloned()
                    .map(Limit::from)
                    .collect();
                let learnt = self.host.ledger.learn(self, &told, anchor.received);
                seen.budgets.extend(learnt);
                let validator = key.map(|key| (key, self.validator(&headers, &prepared)));
                Ok(Read::Page {
                    prepared: Box::new(prepared),
                    validator,
                })
            }
            Err((mut fault, excerpt)) => {
                // What the connector has no word for, the status may still tell.
                if fault.class == Class::Unknown && !(200..300).contains(&status) {
                    fault.class = default_class(status, signals);
                    if fault.scope == Scope::Unit {
                        fault.scope = default_scope(status, fault.class);
                    }
                }
                // A vendor's own sign of a limit wins, whatever a status usually means: a connector that goes by the status
                // alone does not know every header.
                if fault.class == Class::Permanent
                    && told_by_headers
                    && default_class(status, signals) == Class::RateLimited
                {
                    fault.class = Class::RateLimited;
                    fault.scope = default_scope(status, fault.class);
                }
                let learnt = self.host.ledger.learn(self, &fault.limits, anchor.received);
                seen.budgets.extend(learnt);
                found.extend(fault.limits.iter().cloned());
                let wait = wait::vendor_wait(&wait::Answer {
                    class: fault.class,
                    headers: &headers,
                    at: anchor,
                    body_wait: fault.wait,
                    limits: &found,
                    repeats: self.faults().count(fault.class),
                });
                Err((
                    FaultSeen {
                        wait,
                        status: Some(status),
                        ..FaultSeen::of(fault)
                    },
                    excerpt,
                ))
            }
        }
    }

    /// Lets the connector read the answer, on a wasm worker.
    async fn understand(
        &self,
        step: Option<&str>,
        answer: Answer,
    ) -> Result<Prepared, (Fault, Option<Excerpt>)> {
        let (connector, task) = (self.connection.connector.clone(), self.task.clone());
        let stream = self.stream.clone();
        let mut digester = stream.digester.clone();
        let stubborn = self.faults().count(Class::Incomplete) >= PATIENCE;
        let step = step.map(str::to_owned);
        let vendor_now = self.state.clock.now(self.host.clock.wall());
        let read = self
            .host
            .runtime
            .workers()
            .run(move || {
                let reading = Reading {
                    connector: &connector,
                    task: &task,
                    step: step.as_deref(),
                    key: &stream.key,
                    vendor_now,
                    stubborn,
                };
                prepare(&reading, response(answer), &mut digester)
            })
            .await;
        match read {
            Ok(Ok(mut prepared)) => {
                let page = &mut prepared.page;
                for step in page.next.iter_mut().chain(&mut page.cursor) {
                    *step = self.connection.unsigned(std::mem::take(step));
                }
                Ok(prepared)
            }
            Ok(Err(refused)) => {
                let fault = match refused.why {
                    Wrong::Fault(fault) => self.masked(fault),
                    Wrong::Connector(error) => connector_fault(&error),
                };
                Err((fault, Some(refused.excerpt)))
            }
            Err(gone) => Err((host_fault(gone.to_string()), None)),
        }
    }

    /// What lets the next poll ask whether this page has changed.
    fn validator(&self, headers: &[(String, String)], prepared: &Prepared) -> Option<Validator> {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let tags = conditional::remember(
            &Stamps {
                etag: header("etag"),
                last_modified: header("last-modified"),
                date: header("date"),
            },
            Shape {
                full: prepared.arrived() >= u64::from(self.walk.page_size),
                next: !prepared.page.next.is_empty(),
                truncated: prepared.page.truncated,
            },
        )?;
        Some(Validator {
            etag: tags.etag,
            last_modified: tags.last_modified,
            next: prepared.page.next.clone(),
            cursor: prepared.page.cursor.clone(),
            poll_after: prepared.page.poll_after,
            walk: self.walk.number,
        })
    }

    /// A connector may quote what it was given, and a vendor what it was sent: the connection's secrets are masked in
    /// whatever is kept.
    pub(super) fn masked(&self, mut fault: Fault) -> Fault {
        fault.message = self.connection.redactor.mask(&fault.message).into_owned();
        fault.code = self.connection.redactor.mask(&fault.code).into_owned();
        fault
    }
}

/// The call that a request asks for, made with this credential.
pub(super) fn exchange<'p>(
    host: &'p Host,
    request: &Request,
    origin: &'p Origin,
    credential: &'p Credential,
) -> Result<Exchange<'p>, ExchangeError> {
    let endpoint = Endpoint {
        origin,
        credential,
        user_agent: &host.config.host.user_agent,
    };
    Exchange::new(endpoint, ask(request), None)
}

fn ask(request: &Request) -> Ask {
    Ask {
        method: method(request.method),
        target: match &request.target {
            contract::Target::Path(path) => Target::Path(path.clone()),
            contract::Target::Link(link) => Target::Link(link.clone()),
        },
        query: request.query.clone(),
        headers: request
            .headers
            .iter()
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
        body: request.body.as_ref().map(|body| match body {
            Body::Text(text) => text.clone().into_bytes().into(),
            Body::Bytes(bytes) => bytes.clone().into(),
        }),
    }
}

/// The answer as the connector sees it: without credentials, cookies or a byte order mark.
pub(super) fn response(answer: Answer) -> Response {
    let Answer { response, url } = answer;
    let headers = response
        .headers
        .into_iter()
        .map(|(name, value)| contract::Header { name, value })
        .collect();
    let body = match String::from_utf8(response.body.into()) {
        Ok(text) => Body::Text(text),
        Err(error) => Body::Bytes(error.into_bytes()),
    };
    Response {
        status: response.status,
        headers,
        body,
        url: url.into(),
        elapsed: u64::try_from(response.elapsed.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Tells a unit's requests apart.
fn short(key: &ValidatorKey) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = key.request;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn tags(validator: &Validator) -> Tags {
    Tags {
        etag: validator.etag.clone(),
        last_modified: validator.last_modified.clone(),
    }
}

fn method(method: contract::Method) -> &'static str {
    match method {
        contract::Method::Get => "GET",
        contract::Method::Post => "POST",
        contract::Method::Put => "PUT",
        contract::Method::Patch => "PATCH",
        contract::Method::Delete => "DELETE",
        contract::Method::Head => "HEAD",
    }
}

fn fault(class: Class, code: &str, message: String) -> Fault {
    Fault {
        class,
        scope: Scope::Unit,
        code: code.to_owned(),
        message,
        wait: None,
        page_size: None,
        limits: Vec::new(),
    }
}

pub(super) fn permanent(code: &str, message: String) -> Fault {
    fault(Class::Permanent, code, message)
}

/// A trap, a limit that was passed, or an answer that breaks the contract. A few tries, then a person looks at it.
fn connector_fault(error: &CallError) -> Fault {
    let code = match error.kind {
        CallErrorKind::Invalid(_) => "connector-invalid",
        _ => "connector",
    };
    fault(Class::Unknown, code, error.to_string())
}

fn host_fault(message: String) -> Fault {
    fault(Class::Temporary, "host", message)
}

fn exchange_fault(error: &ExchangeError) -> Fault {
    fault(error.class(), error.code(), error.to_string())
}
