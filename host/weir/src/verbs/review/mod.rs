//! `weir review`: what waits for a person's look, and what the person decides.
//!
//! What waits: units that are parked, sign-ins that are due, answers that nobody has mapped, records that could not be
//! taken, and deliveries that a sink has refused for good. A person may look at one in full, have it tried again, or give
//! it up. Nothing is given up by itself.

mod decide;
mod letters;
mod show;

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

use super::{Failure, Selection};
use crate::control::Reply;
use crate::host::Host;
use crate::store::{
    Durable, LetterId, NoReviewId, ReviewEntry, ReviewId, ReviewKind, ShownAnswer, ShownRecord,
    StoreError, UnitId, UnitKey, UnitRow,
};

pub(super) use decide::{dropped, retried};
pub(super) use show::{render_dropped, render_list, render_one, render_retried};

/// Entries that are listed at most.
const LISTED: usize = 1_000;

/// The answer of the list.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    /// What waits, the units first.
    entries: Vec<Entry>,
    /// There are more.
    more: bool,
}

/// One thing that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its name.
    id: String,
    what: What,
    /// The unit; of a delivery the sink.
    unit: String,
    /// When it was first met.
    first: Timestamp,
    /// When it was last met.
    last: Timestamp,
    /// How often.
    times: u64,
    class: Option<Class>,
    code: String,
    message: String,
    /// The answer that caused it.
    answer: Option<ShownAnswer>,
    /// The record that could not be taken.
    record: Option<ShownRecord>,
    /// It was given up before, and waits for nobody.
    dropped: bool,
    /// What a person can do.
    way_out: String,
    /// What is lost when it is given up.
    lost: String,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum What {
    Parked,
    SignIn,
    Unknown,
    Refused,
    Skipped,
    Expiring,
    Record,
    DeadLetter,
}

impl What {
    fn of(kind: ReviewKind) -> What {
        match kind {
            ReviewKind::Parked => What::Parked,
            ReviewKind::SignIn => What::SignIn,
            ReviewKind::Unknown => What::Unknown,
            ReviewKind::Refused => What::Refused,
            ReviewKind::Skipped => What::Skipped,
            ReviewKind::Expiring => What::Expiring,
            ReviewKind::Record => What::Record,
        }
    }

    fn name(self) -> &'static str {
        match self {
            What::Parked => "parked",
            What::SignIn => "needs sign-in",
            What::Unknown => "unknown answer",
            What::Refused => "refused answers",
            What::Skipped => "page left out",
            What::Expiring => "expiring",
            What::Record => "record",
            What::DeadLetter => "dead letter",
        }
    }
}

impl Entry {
    fn of(entry: ReviewEntry) -> Entry {
        let unit = entry.key.to_string();
        let connection = &entry.key.connection;
        let id = entry.id.to_string();
        let (way_out, lost) = match entry.id.kind {
            ReviewKind::Parked => (
                format!("mend the cause, then `weir review retry {id}`"),
                format!("everything that {unit} would bring from now on; its records so far stay"),
            ),
            ReviewKind::SignIn => (
                format!("renew the credential, then `weir resume {connection}`"),
                String::new(),
            ),
            ReviewKind::Unknown => (
                "it is tried again by itself; its connector should map the code".to_owned(),
                "nothing: it comes again if the vendor answers like that again".to_owned(),
            ),
            ReviewKind::Refused => (
                "it is tried again by itself; the vendor, or the connector and its configuration, must be mended"
                    .to_owned(),
                "nothing: it comes again if the vendor answers like that again".to_owned(),
            ),
            ReviewKind::Skipped => (
                format!("`weir review retry {id}` reads everything again; `weir gaps {unit}` lists the hole"),
                "nothing more: the hole stays among the gaps".to_owned(),
            ),
            ReviewKind::Expiring => (
                "it is tried again by itself; mend the cause before the vendor forgets the records".to_owned(),
                "the warning".to_owned(),
            ),
            ReviewKind::Record => (
                format!("it is delivered once the vendor has mended it; `weir review retry {id}` looks at it again"),
                "this record, unless the vendor changes it".to_owned(),
            ),
        };
        Entry {
            id,
            what: What::of(entry.id.kind),
            unit,
            first: entry.first,
            last: entry.last,
            times: entry.times,
            class: entry.class,
            code: entry.code,
            message: entry.message,
            answer: entry.answer,
            record: entry.record,
            dropped: entry.dropped,
            way_out,
            lost,
        }
    }
}

/// The entry of a unit that is parked, where none is stored: by an older program, or pushed out by newer ones.
fn of_parked(unit: &UnitRow) -> Option<ReviewEntry> {
    let parked = unit.state.parked.clone()?;
    Some(ReviewEntry {
        id: parked_id(unit.id),
        key: unit.key.clone(),
        first: parked.since,
        last: parked.since,
        times: 1,
        class: Some(parked.class),
        code: parked.code,
        message: parked.message,
        answer: None,
        record: None,
        dropped: parked.given_up,
    })
}

fn parked_id(unit: UnitId) -> ReviewId {
    ReviewId {
        unit,
        kind: ReviewKind::Parked,
        number: 0,
    }
}

/// What waits, of the units that are meant. `all`: what was given up too, and what the configuration no longer has.
fn waiting(host: &Host, selection: &Selection, all: bool) -> Result<Vec<ReviewEntry>, Failure> {
    let meant = |key: &UnitKey| {
        selection.holds(key) && (all || host.config.connections.contains_key(&key.connection))
    };
    let mut entries: Vec<ReviewEntry> = host
        .store
        .reviews(None, usize::MAX)?
        .into_iter()
        .filter(|entry| meant(&entry.key) && (all || !entry.dropped))
        .collect();
    let stored: HashSet<ReviewId> = entries.iter().map(|entry| entry.id).collect();
    host.store.for_each_unit(&mut |unit| {
        if meant(&unit.key)
            && !stored.contains(&parked_id(unit.id))
            && let Some(entry) = of_parked(&unit)
            && (all || !entry.dropped)
        {
            entries.push(entry);
        }
    })?;
    entries.sort_by(|a, b| (a.id.kind, &a.key, a.first).cmp(&(b.id.kind, &b.key, b.first)));
    Ok(entries)
}

/// `weir review`: 3 while something waits.
pub(super) fn listed(host: &Arc<Host>, unit: Option<&str>, all: bool) -> Result<Reply, Failure> {
    let selection = Selection::parse(unit);
    if selection.connection().is_some() {
        // A name that nothing has is an error, not an empty list.
        selection.units(host)?;
    }
    let mut entries: Vec<Entry> = waiting(host, &selection, all)?
        .into_iter()
        .map(Entry::of)
        .collect();
    if unit.is_none() {
        entries.extend(letters::waiting(host, LISTED + 1)?);
    }
    let exit = if entries.iter().any(|entry| !entry.dropped) {
        3
    } else {
        0
    };
    let more = entries.len() > LISTED;
    entries.truncate(LISTED);
    Ok(Reply::with_exit(exit, Waiting { entries, more }))
}

/// `weir review show ID`.
pub(super) fn shown(host: &Arc<Host>, id: &str) -> Result<Reply, Failure> {
    let entry = match id.parse::<LetterId>() {
        Ok(letter) => Entry::of_letter(&letters::find(host, &letter)?),
        Err(_) => Entry::of(find(host, id)?),
    };
    Ok(Reply::done(entry))
}

fn find(host: &Host, text: &str) -> Result<ReviewEntry, Failure> {
    let unknown = |why: &str| Failure::Unknown(format!("{text} {why}: `weir review` lists them"));
    let id: ReviewId = text
        .parse()
        .map_err(|error: NoReviewId| unknown(&error.to_string()))?;
    if let Some(entry) = host.store.review(id)? {
        return Ok(entry);
    }
    let parked = match id.kind {
        ReviewKind::Parked => host.store.unit(id.unit)?.as_ref().and_then(of_parked),
        _ => None,
    };
    parked.ok_or_else(|| unknown("does not wait for review"))
}

/// Waits until the store has taken something.
async fn settled<T>(durable: Durable<T>) -> Result<T, Failure> {
    Ok(durable.await.unwrap_or(Err(StoreError::Closed))?)
}
