//! A poller that does everything right, or one chosen thing wrong: what the vendor and the judge are tested with.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{SimAnswer, SimRequest, SimResponse};
use crate::spec::{CollectionSpec, End, Order, Paging, VendorSpec};
use crate::vendor::Vendor;

/// A rule that the poller breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Pages by the bare stamp instead of (stamp, id).
    BareStamp,
    /// Asks from the watermark on, without an overlap.
    NoOverlap,
    /// Moves the watermark after the first page instead of at the end of the walk.
    EarlyWatermark,
    /// Takes a known id for a known record.
    DedupById,
    /// Forgets what it knows every so often, as after a crash before a commit.
    Amnesia,
}

pub(crate) struct Oracle {
    spec: CollectionSpec,
    base: String,
    token: Option<String>,
    overlap: i64,
    flaw: Flaw,
    watermark: Option<i64>,
    feed: Option<String>,
    known: HashMap<String, (u64, u64)>,
    pub(crate) lines: String,
    pub(crate) polls: u64,
    pub(crate) whole: u64,
    pub(crate) calls: u64,
}

impl Oracle {
    pub(crate) fn new(spec: &VendorSpec, overlap: i64, flaw: Flaw) -> Self {
        Oracle {
            spec: spec.collections[0].clone(),
            base: spec.base.clone(),
            token: spec.tokens.first().cloned(),
            overlap,
            flaw,
            watermark: None,
            feed: None,
            known: HashMap::new(),
            lines: String::new(),
            polls: 0,
            whole: 0,
            calls: 0,
        }
    }

    /// One poll; its calls are `pace` ms apart. Answers when it ended, and whether the walk was whole.
    pub(crate) fn poll(&mut self, vendor: &Vendor, mut now: i64, pace: i64) -> (i64, bool) {
        self.polls += 1;
        if self.flaw == Flaw::Amnesia && self.polls.is_multiple_of(7) {
            self.known.clear();
        }
        let overlap = if self.flaw == Flaw::NoOverlap {
            0
        } else {
            self.overlap
        };
        let since = self.watermark.map(|watermark| {
            (watermark.min(now) - overlap).div_euclid(self.spec.granularity_ms)
                * self.spec.granularity_ms
        });
        let mut newest = self.watermark;
        let mut params = self.first(since);
        let mut page_number = 0;
        loop {
            now += pace;
            self.calls += 1;
            let Some(response) = self.ask(vendor, now, &params) else {
                return (now, false);
            };
            let Some(page) = Page::read(&self.spec, &response) else {
                return (now, false);
            };
            for record in &page.records {
                newest = newest.max(Some(self.stamp(&record.1)));
                self.emit(vendor, record);
            }
            if self.flaw == Flaw::EarlyWatermark {
                self.watermark = newest;
            }
            page_number += 1;
            match self.next(since, &page, page_number) {
                Some(next) if page_number < 10_000 => params = next,
                Some(_) => return (now, false),
                None => break,
            }
        }
        self.watermark = newest;
        self.whole += 1;
        (now, true)
    }

    fn first(&self, since: Option<i64>) -> String {
        let mut params = format!(
            "{}={}",
            self.spec.page_size.param, self.spec.page_size.default
        );
        if let (Some(since), false) = (since, self.spec.filter.since.param.is_empty()) {
            params.push_str(&format!(
                "&{}={}",
                self.spec.filter.since.param,
                self.spec.filter.format.write(since)
            ));
        }
        if let (Paging::Feed { param, .. }, Some(feed)) = (&self.spec.paging, &self.feed) {
            params = format!("{param}={feed}");
        }
        params
    }

    /// The parameters of the next call, or the whole query of a link; none: the walk is over.
    fn next(&mut self, since: Option<i64>, page: &Page, number: u64) -> Option<String> {
        let first = self.first(since);
        let size = self.spec.page_size.default;
        match self.spec.paging.clone() {
            Paging::None => None,
            Paging::Keyset {
                after_time,
                after_id,
            } => {
                let (id, last) = page.records.last()?;
                if !page.has_more {
                    return None;
                }
                let stamp = self.spec.filter.format.write(self.stamp(last));
                let base = format!("{}={size}", self.spec.page_size.param);
                if self.flaw == Flaw::BareStamp {
                    let past = self
                        .spec
                        .filter
                        .format
                        .write(self.stamp(last) + self.spec.granularity_ms);
                    return Some(format!("{base}&{after_time}={past}"));
                }
                Some(format!("{base}&{after_time}={stamp}&{after_id}={id}"))
            }
            Paging::AfterId { param } => {
                let (id, _) = page.records.last()?;
                page.has_more.then(|| format!("{first}&{param}={id}"))
            }
            Paging::Token {
                param, field, end, ..
            } => {
                let token = page.field(&field)?;
                if token.is_empty() || (end == End::HasMoreFalse && !page.has_more) {
                    return None;
                }
                Some(format!(
                    "{}={size}&{param}={token}",
                    self.spec.page_size.param
                ))
            }
            Paging::Feed { param, field, .. } => {
                let token = page.field(&field)?;
                self.feed = Some(token.clone());
                page.has_more.then(|| format!("{param}={token}"))
            }
            Paging::Page { param, first: from } => {
                (page.records.len() >= size).then(|| format!("{first}&{param}={}", from + number))
            }
            Paging::Offset { param } => (page.records.len() >= size)
                .then(|| format!("{first}&{param}={}", number * size as u64)),
            Paging::NextUrl { field, .. } => {
                let url = page.field(&field).filter(|url| !url.is_empty())?;
                Some(url.split_once('?')?.1.to_owned())
            }
            Paging::Link { .. } => {
                let link = page.link.as_ref()?;
                let next = link
                    .split(", <")
                    .find(|part| part.contains("rel=\"next\""))?;
                let url = next.trim_start_matches('<').split('>').next()?;
                Some(url.split_once('?')?.1.to_owned())
            }
        }
    }

    fn ask(&self, vendor: &Vendor, now: i64, params: &str) -> Option<SimResponse> {
        let url = format!(
            "http://vendor.example.test{}{}?{params}",
            self.base, self.spec.path
        );
        let mut request = SimRequest::get(&url);
        if let Some(token) = &self.token {
            request = request.with("Authorization", &format!("Bearer {token}"));
        }
        match vendor.handle(now, &request) {
            SimAnswer::Response(mut response) if response.status == 200 => {
                response.body = response.decoded().ok()?;
                Some(response)
            }
            _ => None,
        }
    }

    fn stamp(&self, record: &Value) -> i64 {
        match &record["updated_at"] {
            Value::String(text) => self.spec.time_format.read(text).unwrap(),
            other => self.spec.time_format.read(&other.to_string()).unwrap(),
        }
    }

    fn emit(&mut self, vendor: &Vendor, (id, record): &(String, Value)) {
        let rev = record["rev"].as_u64().unwrap();
        let before = self.known.get(id).copied();
        if before.is_some_and(|(known, _)| known == rev || self.flaw == Flaw::DedupById) {
            return;
        }
        let revision = before.map_or(1, |(_, revision)| revision + 1);
        let deleted = record["deleted"].as_bool().unwrap();
        let op = match (deleted, before) {
            (true, _) => "delete",
            (false, None) => "insert",
            (false, Some(_)) => "update",
        };
        self.known.insert(id.clone(), (rev, revision));
        let (connection, stream) = (&vendor.spec().name, &self.spec.name);
        // The poll number stands for what a store would have remembered: keys differ although knowledge was lost.
        let key = match self.flaw {
            Flaw::Amnesia => format!("{connection}/{stream}/{id}/{}-{revision}", self.polls),
            _ => format!("{connection}/{stream}/{id}/{revision}"),
        };
        let data = record["raw"].as_str().unwrap();
        self.lines.push_str(&format!(
            "{{\"connection\":\"{connection}\",\"stream\":\"{stream}\",\"id\":\"{id}\",\"revision\":{revision},\
             \"op\":\"{op}\",\"updated_at\":null,\"seen_at\":\"\",\"key\":\"{key}\",\"data\":{data}}}\n"
        ));
    }
}

/// A page as the poller reads it. Each record has its own text in `raw`.
struct Page {
    records: Vec<(String, Value)>,
    body: Value,
    has_more: bool,
    link: Option<String>,
}

impl Page {
    fn read(spec: &CollectionSpec, response: &SimResponse) -> Option<Self> {
        let body: Value = serde_json::from_slice(&response.body).ok()?;
        let text = std::str::from_utf8(&response.body).ok()?;
        let raw: Vec<Box<RawValue>> = if spec.envelope.records.is_empty() {
            serde_json::from_str(text).ok()?
        } else {
            let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
            serde_json::from_str(fields.get(&spec.envelope.records)?.get()).ok()?
        };
        let mut records = Vec::new();
        for raw in raw {
            let mut record: Value = serde_json::from_str(raw.get()).ok()?;
            let id = match record.get("id")? {
                Value::String(id) => id.clone(),
                other => other.to_string(),
            };
            record.get("updated_at")?;
            record["raw"] = Value::String(raw.get().to_owned());
            records.push((id, record));
        }
        if !spec.envelope.count.is_empty() && body[&spec.envelope.count] != records.len() {
            return None;
        }
        Some(Page {
            has_more: body[&spec.envelope.has_more] == true,
            records,
            link: response.header("link").map(str::to_owned),
            body,
        })
    }

    fn field(&self, path: &str) -> Option<String> {
        let value = path
            .split('.')
            .try_fold(&self.body, |value, name| value.get(name))?;
        value.as_str().map(str::to_owned)
    }
}

/// Whether stamps alone lead a poller through this listing from one poll to the next.
pub(crate) fn is_stable(spec: &CollectionSpec) -> bool {
    let by_place = !matches!(
        spec.paging,
        Paging::Page { .. } | Paging::Offset { .. } | Paging::None
    );
    by_place || (spec.order == Order::Unordered && spec.filter.since.param.is_empty())
}
