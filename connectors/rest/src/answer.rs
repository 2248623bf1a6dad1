//! What an answer means: a fault, or a page of records and the way on.
//!
//! Promises: the body is passed over once, whatever is wanted of it; records are places in it, never copies. Zero
//! records and a wrong shape are different things: an answer without the array where the records belong is incomplete.

use weir_sdk::json::{self, Listing, Plan, Raw, Row};
use weir_sdk::{Fault, Page, Response, Task, fault, log, url};

use crate::Rest;
use crate::endpoint::{Endpoint, Mark, Paging, Sync};
use crate::errors::{self, Verdict, present, text_of};
use crate::paging::{self, Arrived};
use crate::step::Step;

/// Reads the answer to the call of `step`.
pub(crate) fn read(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    step: Option<&Step>,
    response: &Response,
) -> Result<Page<Rest>, Fault> {
    match response.status {
        204 => Ok(Page::new()),
        200..=299 if response.status != 202 => success(endpoint, task, step, response),
        _ => {
            let text = response.text().unwrap_or_default();
            // The body of a refusal is small: each rule may look for itself.
            let body = |pointer: &str| json::at(text, pointer).ok().flatten();
            match errors::judge(&endpoint.errors, response, body, task.page_size) {
                Some(Verdict::Empty) => Ok(Page::new()),
                Some(Verdict::Fault(fault)) => Err(fault),
                None => match paging::refused(step) {
                    Some(onward) if matches!(response.status, 400 | 413 | 422) => {
                        Ok(Page::new().next_if(onward.next).truncated(onward.truncated))
                    }
                    _ => Err(fault::from_status(response)),
                },
            }
        }
    }
}

fn success(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    step: Option<&Step>,
    response: &Response,
) -> Result<Page<Rest>, Fault> {
    let text = response.text()?;
    let pointers = envelope_pointers(endpoint, response.status);
    let fields = Fields::of(endpoint);
    let plan = with_envelope(fields.plan(endpoint), &pointers);
    let read = plan.read(text);
    let envelope = match &read {
        Ok(listing) => Envelope::of(&pointers, listing),
        // A body that says what went wrong often holds no records: hear it before complaining of its shape.
        Err(_) => match with_envelope(Plan::single(), &pointers).read(text) {
            Ok(listing) => Envelope::of(&pointers, &listing),
            Err(_) => Envelope::default(),
        },
    };
    match errors::judge(
        &endpoint.errors,
        response,
        |pointer| envelope.get(pointer),
        task.page_size,
    ) {
        Some(Verdict::Empty) => return Ok(Page::new()),
        Some(Verdict::Fault(fault)) => return Err(fault),
        None => {}
    }
    let listing = match read {
        Ok(listing) => Some(listing),
        Err(json::Error::Missing { .. } | json::Error::Shape { found: "null", .. })
            if endpoint.missing_is_empty =>
        {
            None
        }
        Err(error) => return Err(error.into()),
    };
    let count = listing.as_ref().map_or(0, Listing::len);
    let claimed = endpoint
        .count
        .as_deref()
        .and_then(|pointer| envelope.get(pointer))
        .and_then(Raw::u64);
    if let Some(claimed) = claimed.filter(|claimed| *claimed > count as u64) {
        return Err(Fault::incomplete(format!(
            "the answer holds {count} records and claims {claimed}"
        ))
        .code("count"));
    }

    let mut page = Page::<Rest>::with_capacity(count);
    for row in listing.iter().flat_map(Listing::rows) {
        // A record without an id must not hold up the others: the host sets it aside.
        let mut record = row.record(text, fields.id(&row).unwrap_or_default());
        if let (Some(field), Some(updated_at)) = (fields.updated_at, &endpoint.updated_at) {
            record.updated_at = row.time(field, updated_at.format);
        }
        if let (Some(field), Some(mark)) = (fields.deleted, &endpoint.deleted) {
            record.deleted = marked(row.get(field), mark);
        }
        page.push(record);
    }
    let arrived = Arrived {
        listing: listing.as_ref(),
        envelope: &envelope,
        response,
        time_field: fields.updated_at,
    };
    let onward = paging::onward(endpoint, task, step, &arrived);
    page.truncated = onward.truncated;
    if onward.again {
        page.records.clear();
    }
    page.next.extend(onward.next);
    if page.next.is_empty() {
        page.cursor = sync_token(endpoint, task, &envelope, response);
    }
    // What is left behind a keyset position is not the count of the whole walk.
    if step.is_none() || !matches!(endpoint.paging, Paging::Keyset { .. }) {
        page.total = endpoint
            .total
            .as_deref()
            .and_then(|pointer| envelope.get(pointer))
            .and_then(Raw::u64);
    }
    page.poll_after = endpoint
        .poll_after
        .as_ref()
        .and_then(|told| errors::told_wait(told, response, |pointer| envelope.get(pointer)));
    Ok(page)
}

/// Where a record's fields stand in the plan.
struct Fields {
    ids: usize,
    updated_at: Option<usize>,
    deleted: Option<usize>,
}

impl Fields {
    fn of(endpoint: &Endpoint) -> Self {
        let ids = endpoint.id.len();
        let updated_at = endpoint.updated_at.as_ref().map(|_| ids);
        let deleted = endpoint
            .deleted
            .as_ref()
            .map(|_| ids + usize::from(updated_at.is_some()));
        Fields {
            ids,
            updated_at,
            deleted,
        }
    }

    fn plan(&self, endpoint: &Endpoint) -> Plan {
        let pointers = endpoint.id.iter().map(String::as_str);
        let updated_at = endpoint
            .updated_at
            .iter()
            .map(|updated_at| updated_at.pointer.as_str());
        let deleted = endpoint.deleted.iter().map(|mark| mark.pointer.as_str());
        pointers
            .chain(updated_at)
            .chain(deleted)
            .fold(Plan::new(&endpoint.records), Plan::field)
    }

    /// The record's id. Parts of a compound one are joined by slashes; those inside a part are escaped as in a JSON
    /// pointer, so that no two keys become one id.
    fn id(&self, row: &Row<'_, '_>) -> Result<String, json::Error> {
        if self.ids == 1 {
            return row.id(0);
        }
        let mut id = String::new();
        for part in 0..self.ids {
            if part > 0 {
                id.push('/');
            }
            id.push_str(&row.id(part)?.replace('~', "~0").replace('/', "~1"));
        }
        Ok(id)
    }
}

fn marked(found: Option<Raw<'_>>, mark: &Mark) -> bool {
    match (&mark.equals, found) {
        (_, None) => false,
        (None, Some(value)) => present(value),
        (Some(wanted), Some(value)) => text_of(value) == wanted.text,
    }
}

/// What was asked for around the records, by pointer.
#[derive(Default)]
pub(crate) struct Envelope<'e, 'a> {
    values: Vec<(&'e str, Option<Raw<'a>>)>,
}

impl<'e, 'a> Envelope<'e, 'a> {
    fn of(pointers: &[&'e str], listing: &Listing<'_, 'a>) -> Self {
        let values = pointers
            .iter()
            .enumerate()
            .map(|(slot, pointer)| (*pointer, listing.outside(slot)))
            .collect();
        Envelope { values }
    }

    /// The value at a pointer that was asked for.
    pub(crate) fn get(&self, pointer: &str) -> Option<Raw<'a>> {
        self.values
            .iter()
            .find(|(known, _)| *known == pointer)
            .and_then(|(_, value)| *value)
    }
}

fn with_envelope(plan: Plan, pointers: &[&str]) -> Plan {
    pointers
        .iter()
        .fold(plan, |plan, pointer| plan.outside(pointer))
}

/// All that is wanted around the records of a success.
fn envelope_pointers(endpoint: &Endpoint, status: u16) -> Vec<&str> {
    let position = match &endpoint.paging {
        Paging::Token { place, .. } => place.pointer(),
        Paging::NextUrl { pointer } => Some(pointer.as_str()),
        _ => None,
    };
    let single = [
        position,
        endpoint.has_more.as_deref(),
        endpoint.is_last.as_deref(),
        endpoint.total.as_deref(),
        endpoint.count.as_deref(),
        endpoint.sync.as_ref().map(Sync::pointer),
        endpoint
            .poll_after
            .as_ref()
            .and_then(|told| told.place.pointer()),
    ];
    let mut pointers: Vec<&str> = single.into_iter().flatten().collect();
    for rule in endpoint.errors.iter().filter(|rule| rule.concerns(status)) {
        if let Some(pointer) = rule.pointer().filter(|pointer| !pointers.contains(pointer)) {
            pointers.push(pointer);
        }
    }
    pointers
}

/// The unit's new cursor, from the walk's last page. Without one the old cursor stays: some vendors end on an empty page
/// that has none.
fn sync_token(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    envelope: &Envelope<'_, '_>,
    response: &Response,
) -> Option<String> {
    let sync = endpoint.sync.as_ref()?;
    let token = envelope.get(sync.pointer()).and_then(Raw::id);
    if token.is_none() && task.cursor.is_none() {
        log::warn(format!(
            "the last page has no sync token at {}: the next poll reads everything again",
            sync.pointer()
        ));
    }
    match sync {
        Sync::Token { .. } => token,
        Sync::Url { .. } => url::resolve(&response.url, token?.trim()),
    }
}
