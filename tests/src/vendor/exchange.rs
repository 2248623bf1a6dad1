//! One call from its arrival to its answer, in the order in which real vendors look at a call: is anything up at
//! all, who calls, is there quota left, what is asked.

use std::collections::HashMap;

use bytes::Bytes;

use super::conditional::{accepts_gzip, compress, is_unmodified, validators};
use super::errors::{error, refusal, with_text};
use super::faults::{Faults, Nth};
use super::load::Load;
use super::play::{Reply, play, spoil};
use crate::answer::{SimAnswer, SimRequest};
use crate::dice::{Dice, mix, seed_for};
use crate::ledger::{Call, Counts, Outcome, Told};
use crate::limits::{self, Quotas};
use crate::listing::{self, Damage};
use crate::spec::{CollectionSpec, Dialect, FaultKind, ScriptedFault, VendorSpec};
use crate::time::http_date;
use crate::world::{Renderer, Texts, Version, World};

/// Calls that are kept one by one; later ones only count.
const CALLS_KEPT: usize = 1_000_000;

/// An answer, and what the vendor itself makes of the call.
#[derive(Clone, Debug)]
pub struct Served {
    /// What goes over the wire.
    pub answer: SimAnswer,
    /// The call as it is remembered.
    pub call: Call,
    /// The wait that the answer tells of.
    pub told: Option<Told>,
    /// Who called: the bearer token, or `anonymous`.
    pub caller: String,
    /// Which collection, by its place in the spec.
    pub collection: Option<usize>,
    /// The page that was asked for, where the call got so far: also behind a 304 and a spoiled answer.
    pub page: Option<Shown>,
}

/// A page, as the vendor means it.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Its records, in their order.
    pub versions: Vec<Version>,
    /// The lower bound that was asked for.
    pub since: Option<i64>,
    /// The upper bound that was asked for.
    pub until: Option<i64>,
    /// It is the first of a walk.
    pub first: bool,
    /// More pages follow.
    pub more: bool,
}

/// Everything about one collection that changes.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) world: World,
    pub(super) renderer: Renderer,
    texts: Texts,
    pub(super) first_call: Option<i64>,
    calls: u64,
}

/// Everything about a vendor that changes.
#[derive(Debug)]
pub(super) struct State {
    start: i64,
    now: i64,
    seed: u64,
    pub(super) desks: Vec<Desk>,
    quotas: Quotas,
    faults: Faults,
    load: Load,
    pub(super) calls: Vec<Call>,
    pub(super) counts: Counts,
    callers: HashMap<String, Caller>,
}

/// What is remembered of a caller: until when, by collection.
#[derive(Debug, Default)]
struct Caller {
    /// It was told to wait with all collections.
    told_all: Option<i64>,
    /// It was told to wait.
    told: HashMap<usize, i64>,
    /// Its last call is being answered.
    busy: HashMap<usize, i64>,
}

impl State {
    pub(super) fn new(spec: &VendorSpec, start: i64) -> Self {
        State {
            start,
            now: start,
            seed: seed_for(spec.seed, "calls"),
            desks: spec
                .collections
                .iter()
                .map(|collection| Desk {
                    world: World::new(collection, spec.seed, start),
                    renderer: Renderer::new(spec.seed, collection),
                    texts: Texts::default(),
                    first_call: None,
                    calls: 0,
                })
                .collect(),
            quotas: Quotas::new(spec.limits.clone(), spec.quota_cuts.clone(), start),
            faults: Faults::new(&spec.faults, spec.seed, start),
            load: Load::default(),
            calls: Vec::new(),
            counts: Counts::default(),
            callers: HashMap::new(),
        }
    }

    pub(super) fn advance(&mut self, now: i64) {
        self.now = self.now.max(now);
        for desk in &mut self.desks {
            desk.world.advance(self.now);
        }
    }

    pub(super) fn freeze(&mut self, now: i64) {
        self.now = self.now.max(now);
        for desk in &mut self.desks {
            desk.world.freeze(self.now);
        }
    }

    pub(super) fn world(&mut self, spec: &VendorSpec, collection: &str) -> Option<&mut World> {
        let index = spec
            .collections
            .iter()
            .position(|have| have.name == collection)?;
        self.desks.get_mut(index).map(|desk| &mut desk.world)
    }

    pub(super) fn inject(&mut self, fault: ScriptedFault) {
        self.faults.inject(fault);
    }

    pub(super) fn handle(&mut self, spec: &VendorSpec, now: i64, request: &SimRequest) -> Served {
        self.now = self.now.max(now);
        let caller = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            .unwrap_or("anonymous")
            .to_owned();
        let index = request
            .path
            .strip_prefix(spec.base.as_str())
            .and_then(|path| {
                spec.collections
                    .iter()
                    .position(|collection| collection.path == path)
            });
        let early = self.is_early(&caller, index);
        let overlapping = index.is_some_and(|index| self.is_busy(&caller, index));

        let number = self.counts.calls + 1;
        let mut dice = Dice::new(self.seed ^ mix(number));
        let (latency, gives_in) = self.load.take(&spec.latency, self.now, &mut dice);
        let mut reply = self.reply(spec, request, &caller, index, number, gives_in);
        self.finish(spec, &caller, latency, &mut reply.answer);

        let told = reply.told.map(|(wait_ms, all)| Told {
            until: self.now + wait_ms,
            all,
        });
        if let Some(told) = told {
            let known = self.callers.entry(caller.clone()).or_default();
            if told.all || index.is_none() {
                known.told_all = Some(told.until);
            } else if let Some(index) = index {
                known.told.insert(index, told.until);
            }
        }
        let (status, bytes, ends) = match &reply.answer {
            SimAnswer::Response(response) => {
                (response.status, response.body.len(), response.latency_ms)
            }
            SimAnswer::Broken { response, sent } => (response.status, *sent, response.latency_ms),
            SimAnswer::Huge { response, .. } => {
                (response.status, response.body.len(), response.latency_ms)
            }
            // The client decides when it has had enough.
            SimAnswer::Reset { .. } | SimAnswer::Hang => (0, 0, 0),
        };
        if let Some(index) = index {
            let ends = self.now + i64::try_from(ends).unwrap_or(0);
            match self.callers.get_mut(&caller) {
                Some(known) => known.busy.insert(index, ends),
                None => {
                    let known = self.callers.entry(caller.clone()).or_default();
                    known.busy.insert(index, ends)
                }
            };
        }
        let call = Call {
            at: self.now,
            collection: index
                .and_then(|index| spec.collections.get(index))
                .map(|collection| collection.name.clone()),
            target: format!("{}?{}", request.path, request.raw_query),
            status,
            outcome: reply.outcome,
            records: reply.records,
            bytes,
            early,
            overlapping,
        };
        self.counts.add(&call);
        if self.calls.len() < CALLS_KEPT {
            self.calls.push(call.clone());
        }
        Served {
            answer: reply.answer,
            call,
            caller,
            collection: index,
            page: reply.page,
            told,
        }
    }

    fn is_early(&self, caller: &str, index: Option<usize>) -> bool {
        let Some(caller) = self.callers.get(caller) else {
            return false;
        };
        let waits = |until: Option<i64>| until.is_some_and(|until| self.now < until);
        let told = index.and_then(|index| caller.told.get(&index).copied());
        waits(caller.told_all) || waits(told)
    }

    fn is_busy(&self, caller: &str, index: usize) -> bool {
        self.callers
            .get(caller)
            .and_then(|caller| caller.busy.get(&index))
            .is_some_and(|until| self.now < *until)
    }

    fn reply(
        &mut self,
        spec: &VendorSpec,
        request: &SimRequest,
        caller: &str,
        index: Option<usize>,
        number: u64,
        gives_in: bool,
    ) -> Reply {
        let server_now = self.now + spec.date_skew_ms;
        if let Some(fault) = self.faults.outage(self.now).cloned()
            && let Some(reply) = play(&fault, request, server_now)
        {
            return reply;
        }
        let Some((index, collection)) =
            index.and_then(|index| Some((index, spec.collections.get(index)?)))
        else {
            let response = error(404, "not_found", &format!("there is no {}", request.path));
            return Reply::new(response, Outcome::Refused(404));
        };
        let of_collection = self.desks.get_mut(index).map_or(0, |desk| {
            desk.first_call.get_or_insert(self.now);
            desk.calls += 1;
            desk.calls
        });
        let nth = Nth {
            now: self.now,
            collection: &collection.name,
            of_all: number,
            of_collection,
        };
        let scripted = self.faults.scripted(nth).cloned();
        if let Some(reply) = scripted
            .as_ref()
            .and_then(|fault| play(fault, request, server_now))
        {
            return reply;
        }
        if !spec.tokens.is_empty() && !spec.tokens.iter().any(|token| token == caller) {
            let mut response = error(401, "invalid_token", "send a valid bearer token");
            response.set("www-authenticate", "Bearer error=\"invalid_token\"");
            return Reply::new(response, Outcome::Unauthorized);
        }
        if let Err(refused) = self.quotas.spend(self.now, caller) {
            return self.over_quota(refused, server_now);
        }
        self.counts.quota_used += 1;
        if request.method != "GET" {
            let response = error(405, "method_not_allowed", "only GET is possible here");
            return Reply::new(response, Outcome::Refused(405));
        }
        let random = self.faults.random(nth).cloned();
        if let Some(reply) = random
            .as_ref()
            .and_then(|fault| play(fault, request, server_now))
        {
            return reply;
        }
        if gives_in {
            let response = with_text(503, "text/plain", "Service Unavailable".into());
            return Reply::new(response, Outcome::Overloaded);
        }
        let fault = scripted.or(random);
        let reply = self.list(spec, collection, index, request, fault.as_ref());
        if reply.outcome == Outcome::NotModified && spec.free_not_modified {
            self.quotas.refund(self.now, caller);
            self.counts.quota_used -= 1;
        }
        reply
    }

    fn over_quota(&self, refused: limits::Refused, server_now: i64) -> Reply {
        let Some(limit) = self.quotas.limit(refused.limit) else {
            return Reply::new(
                error(429, "rate_limited", "too many requests"),
                Outcome::OverQuota,
            );
        };
        let told = limits::tell(limit.wait, refused.wait_ms, server_now);
        // Without a wait in words, the reset in the headers is the vendor's word.
        let by_header = limit
            .dialects
            .iter()
            .any(tells_reset)
            .then_some(refused.wait_ms);
        let wait_ms = told.wait_ms.or(by_header);
        let response = refusal(limit.status, &limit.body, "", told);
        Reply {
            told: wait_ms.map(|wait_ms| (wait_ms, true)),
            ..Reply::new(response, Outcome::OverQuota)
        }
    }

    /// The right answer, spoiled by a fault that works on right answers.
    fn list(
        &mut self,
        spec: &VendorSpec,
        collection: &CollectionSpec,
        index: usize,
        request: &SimRequest,
        fault: Option<&FaultKind>,
    ) -> Reply {
        let now = self.now;
        let lost_before = self.faults.lost_before(now);
        let Some(desk) = self.desks.get_mut(index) else {
            return Reply::new(
                error(404, "not_found", "no such collection"),
                Outcome::Refused(404),
            );
        };
        desk.world.advance(now);
        let params = request.query();
        let asked = listing::read(
            collection,
            (&desk.renderer, &desk.world),
            &params,
            &request.raw_query,
            now,
            lost_before,
        )
        .and_then(|query| {
            let page = listing::page(collection, &desk.world, &query, now)?;
            Ok((query, page))
        });
        let (query, page) = match asked {
            Ok(asked) => asked,
            Err(refusal) => {
                let response = error(refusal.status, refusal.code, &refusal.message);
                return Reply::new(response, Outcome::Refused(refusal.status));
            }
        };
        let damage = match fault {
            Some(FaultKind::MissingFields) => Damage::NoStamps,
            Some(FaultKind::MissingRecord) => Damage::NoLastRecord,
            _ => Damage::None,
        };
        let since_start = now - self.start;
        let (text, paging) = listing::body(
            collection,
            (&desk.renderer, &mut desk.texts),
            &page,
            request,
            since_start,
            damage,
        );

        let records = page.versions.len();
        let mut shown = Shown {
            since: query.since,
            until: query.until,
            first: query.is_first(),
            more: page.has_more,
            versions: page.versions,
        };
        if damage == Damage::NoLastRecord {
            shown.versions.pop();
        }
        let mut response = with_text(200, "application/json; charset=utf-8", text);
        response.headers.extend(paging);
        let changed = desk.world.last_change() + spec.date_skew_ms;
        validators(collection, changed, &mut response);
        if is_unmodified(request, &response, changed) {
            response.status = 304;
            response.body = Bytes::new();
            response
                .headers
                .retain(|(name, _)| name != "content-type" && name != "link");
            return Reply {
                page: Some(shown),
                ..Reply::new(response, Outcome::NotModified)
            };
        }
        if spec.gzip && accepts_gzip(request) {
            compress(&mut response);
        }
        let (answer, outcome) = spoil(response, fault);
        Reply {
            answer,
            outcome,
            records,
            told: None,
            page: Some(shown),
        }
    }

    /// What every answer has.
    fn finish(&mut self, spec: &VendorSpec, caller: &str, latency: u64, answer: &mut SimAnswer) {
        let (SimAnswer::Response(response)
        | SimAnswer::Broken { response, .. }
        | SimAnswer::Huge { response, .. }) = answer
        else {
            return;
        };
        response.latency_ms += latency;
        let server_now = self.now + spec.date_skew_ms;
        let mut headers = vec![("date".to_owned(), http_date(server_now))];
        limits::write(
            &self.quotas.views(self.now, caller),
            server_now,
            &mut headers,
        );
        headers.retain(|(name, _)| response.header(name).is_none());
        response.headers.append(&mut headers);
    }
}

/// Whether a dialect tells when the quota is there again.
fn tells_reset(dialect: &Dialect) -> bool {
    !matches!(
        dialect,
        Dialect::Interval
            | Dialect::UsedOfLimit
            | Dialect::UsagePair
            | Dialect::PercentJson
            | Dialect::BusinessJson
            | Dialect::OnlyLeft
    )
}
