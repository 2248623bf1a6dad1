//! `weir gaps`: the holes in the data, until they are closed.
//!
//! What is not read just now, because a vendor fails or waits for a sign-in, is told too: it becomes a gap when that lasts.
//!
//! Listed are gaps that were noted (windows that don't touch, cut by the vendor, given up; a feed that has moved on), the
//! part of a unit that nothing has been read of for long because every try fails, what a person asked to be read again,
//! and for a week what has been closed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_rules::coverage::{Gap, GapSource};
use weir_rules::gaps::{Outlook, outlook};
use weir_rules::model::{Reason, Timestamp};
use weir_rules::unit::{Settings, UnitState};

use super::text::{count, from_now, moment, table};
use super::{Failure, Selection};
use crate::control::Reply;
use crate::host::Host;
use crate::store::{ReviewEntry, ReviewKind, UnitRow};

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Gaps {
    /// The moment that it speaks of, by this machine's clock.
    now: Timestamp,
    gaps: Vec<UnitGap>,
    /// What is not read just now, and not yet for long.
    #[serde(default)]
    unread: Vec<Unread>,
    /// Records that could not be taken and wait for review: single holes.
    #[serde(default)]
    set_aside: u64,
    /// Gaps that can't be filled and that were accepted just now.
    accepted: u64,
}

/// A unit of which nothing has been read for a while because every try fails.
#[derive(Debug, Serialize, Deserialize)]
struct Unread {
    unit: String,
    /// Up to where it has been read, by the vendor's clock.
    since: Timestamp,
    why: String,
}

/// One hole: `since <= updated_at < until`, by the vendor's clock.
#[derive(Debug, Serialize, Deserialize)]
struct UnitGap {
    unit: String,
    /// None: from the beginning.
    since: Option<Timestamp>,
    until: Timestamp,
    source: GapSource,
    state: State,
    /// When it was found, by this machine's clock; none when that is not known.
    found: Option<Timestamp>,
    /// When it was closed.
    closed: Option<Timestamp>,
    /// What is known of it, and the way out.
    why: String,
}

/// How far a gap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// It is not filled by itself.
    Open,
    /// A side walk will fill it.
    Queued,
    /// A side walk is in it.
    Walking,
    /// It can't be filled.
    Lost,
    /// The same, and a person has taken note.
    Accepted,
    /// It has been filled.
    Closed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Queued => "queued",
            State::Walking => "being filled",
            State::Lost => "can't be filled",
            State::Accepted => "accepted",
            State::Closed => "closed",
        }
    }
}

impl UnitGap {
    /// Somebody should know.
    fn counts(&self) -> bool {
        !matches!(self.state, State::Accepted | State::Closed) && self.source != GapSource::Asked
            || self.state == State::Lost
    }
}

/// Done, and 3 while there is a hole that nobody has accepted.
pub(super) async fn answer(
    host: &Arc<Host>,
    unit: Option<&str>,
    accept: bool,
) -> Result<Reply, Failure> {
    let now = host.clock.wall();
    let selection = Selection::parse(unit);
    let mut accepted = 0;
    if accept {
        for row in selection.units(host)? {
            accepted += accept_lost(host, row, now).await?;
        }
    }
    let mut gaps = Vec::new();
    let mut unread = Vec::new();
    for row in selection.units(host)? {
        let settings = settings_of(host, &row);
        gaps.extend(of(&row, settings.as_ref(), now));
        unread.extend(settings.and_then(|settings| unread_of(&row, &settings, now)));
    }
    let waits = |entry: &ReviewEntry| {
        entry.id.kind == ReviewKind::Record && !entry.dropped && selection.holds(&entry.key)
    };
    let entries = host.store.reviews(None, usize::MAX)?;
    let set_aside = entries.iter().filter(|entry| waits(entry)).count() as u64;
    let counts = set_aside > 0 || gaps.iter().any(UnitGap::counts);
    Ok(Reply::with_exit(
        if counts { 3 } else { 0 },
        Gaps {
            now,
            gaps,
            unread,
            set_aside,
            accepted,
        },
    ))
}

/// How the unit is polled, where its connection is ready.
pub(super) fn settings_of(host: &Host, row: &UnitRow) -> Option<Settings> {
    let connection = host.connections.get(&row.key.connection)?;
    let stream = connection.streams.get(&row.key.stream)?;
    Some(stream.settings.clone())
}

async fn accept_lost(host: &Arc<Host>, row: UnitRow, now: Timestamp) -> Result<u64, Failure> {
    let Some(settings) = settings_of(host, &row) else {
        return Ok(0);
    };
    let lost = move |state: &UnitState, gap: &Gap| {
        let vendor_now = state.clock.now(now);
        let outlook = outlook(gap, &settings.stream, settings.start, vendor_now);
        matches!(outlook, Outlook::Lost(_))
    };
    // Also what a person has asked for and can't have.
    let count = row
        .state
        .gaps
        .iter()
        .filter(|gap| !gap.accepted && lost(&row.state, gap))
        .count();
    if count > 0 {
        host.change_unit(
            row.id,
            Box::new(move |state| {
                let known = state.clone();
                state.gaps.accept(|gap| lost(&known, gap));
            }),
        )
        .await?;
    }
    Ok(count as u64)
}

fn unread_of(row: &UnitRow, settings: &Settings, now: Timestamp) -> Option<Unread> {
    if row.state.behind(settings, now).is_some() {
        return None;
    }
    let gap = row.state.unread(now)?;
    Some(Unread {
        unit: row.key.to_string(),
        since: gap.extent.since,
        why: gap.detail.unwrap_or_else(|| "every try fails".to_owned()),
    })
}

/// The gaps of one unit, the oldest first.
fn of(row: &UnitRow, settings: Option<&Settings>, now: Timestamp) -> Vec<UnitGap> {
    let state = &row.state;
    let unit = row.key.to_string();
    let mut gaps: Vec<UnitGap> = state
        .gaps
        .iter()
        .filter_map(|gap| {
            let (progress, why) = progress(state, settings, gap, now, &unit)?;
            Some(listed(&unit, gap, progress, why))
        })
        .collect();
    if let Some(gap) = settings.and_then(|settings| state.behind(settings, now)) {
        let why = match (&state.parked, &gap.detail) {
            (Some(parked), _) => format!(
                "nothing has been read since: the unit is parked ({} {})",
                parked.class.name(),
                parked.code
            ),
            (None, Some(detail)) => {
                format!("nothing has been read since, every try failed: {detail}")
            }
            (None, None) => "nothing has been read since: every try failed".to_owned(),
        };
        gaps.push(listed(&unit, &gap, State::Open, why));
    }
    gaps.sort_by_key(|gap| (gap.since, gap.until));
    gaps.extend(state.side.closed.iter().map(|closed| {
        let gap = Gap::new(closed.extent, closed.source, closed.found);
        UnitGap {
            closed: Some(closed.closed),
            ..listed(&unit, &gap, State::Closed, source(closed.source).to_owned())
        }
    }));
    gaps
}

fn listed(unit: &str, gap: &Gap, state: State, why: String) -> UnitGap {
    UnitGap {
        unit: unit.to_owned(),
        since: (gap.extent.since > Timestamp::MIN).then_some(gap.extent.since),
        until: gap.extent.until,
        source: gap.source,
        state,
        found: (gap.found != 0).then_some(gap.found),
        closed: None,
        why,
    }
}

/// How far the gap is, and why; none where nobody wants it.
fn progress(
    state: &UnitState,
    settings: Option<&Settings>,
    gap: &Gap,
    now: Timestamp,
    unit: &str,
) -> Option<(State, String)> {
    let mut what = source(gap.source).to_owned();
    if let Some(detail) = &gap.detail {
        what.push_str(&format!(": {detail}"));
    }
    let lost = |why: String| {
        let state = if gap.accepted {
            State::Accepted
        } else {
            State::Lost
        };
        Some((state, why))
    };
    let Some(settings) = settings else {
        return match &gap.lost {
            Some(why) => lost(why.clone()),
            None => Some((State::Open, what)),
        };
    };
    let vendor_now = state.clock.now(now);
    match outlook(gap, &settings.stream, settings.start, vendor_now) {
        Outlook::Unwanted => None,
        Outlook::Lost(why) if gap.source == GapSource::NoOverlap => lost(format!("{what}; {why}")),
        Outlook::Lost(why) => lost(why),
        Outlook::NeedsStart => Some((
            State::Open,
            "the vendor answers narrow windows alone: say where the stream begins with streams.NAME.start"
                .to_owned(),
        )),
        Outlook::NeedsResync => Some((
            State::Open,
            format!(
                "{what}; the vendor can't be asked for a part: `weir sync {unit} --full` reads everything again"
            ),
        )),
        Outlook::NextPoll => Some((
            State::Open,
            format!("{what}; closed by the next poll that reads the whole"),
        )),
        Outlook::Fillable => {
            let walking = state.side.walk.as_ref().is_some_and(|walk| {
                walk.reason == Reason::Backfill && gap.extent.common(walk.window.into()).is_some()
            });
            if let Some(waiting) = state.side.waiting.as_ref().filter(|waiting| waiting.until > now)
            {
                what.push_str(&format!(
                    "; waits until {}: {}",
                    moment(waiting.until),
                    waiting.why
                ));
            }
            let state = if walking {
                State::Walking
            } else {
                State::Queued
            };
            Some((state, what))
        }
    }
}

fn source(source: GapSource) -> &'static str {
    match source {
        GapSource::Untouched => "two polls' windows do not touch",
        GapSource::Truncated => "the vendor had more and did not give it",
        GapSource::GivenUp => "every try failed",
        GapSource::NoStart => "nobody said where the stream begins",
        GapSource::NoOverlap => "records fell off the feed between two polls",
        GapSource::Asked => "asked for",
    }
}

pub(super) fn render(answer: &Gaps) -> String {
    let mut text = String::new();
    if answer.accepted > 0 {
        text.push_str(&format!("{} accepted.\n", answer.accepted));
    }
    if answer.set_aside > 0 {
        text.push_str(&format!(
            "{} could not be taken and wait: `weir review` has them.\n",
            count(answer.set_aside, "record")
        ));
    }
    if answer.gaps.is_empty() && answer.set_aside == 0 {
        text.push_str("No gap is known.\n");
    }
    if !answer.unread.is_empty() {
        text.push_str("Not read just now; what comes meanwhile is read when that is over:\n");
    }
    for unread in &answer.unread {
        text.push_str(&format!(
            "- {} since {}: {}\n",
            unread.unit,
            moment(unread.since),
            unread.why
        ));
    }
    if answer.gaps.is_empty() {
        return text;
    }
    let rows: Vec<Vec<String>> = answer
        .gaps
        .iter()
        .map(|gap| {
            let state = match gap.closed {
                Some(closed) => format!("closed {}", from_now(closed, answer.now)),
                None => gap.state.name().to_owned(),
            };
            vec![
                gap.unit.clone(),
                gap.since.map_or_else(|| "the beginning".to_owned(), moment),
                moment(gap.until),
                gap.found
                    .map(|found| from_now(found, answer.now))
                    .unwrap_or_default(),
                state,
                gap.why.clone(),
            ]
        })
        .collect();
    text.push_str(&table(
        &["unit", "since", "until", "found", "state", "why"],
        &rows,
    ));
    text
}
