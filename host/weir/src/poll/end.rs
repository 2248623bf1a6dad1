//! What the end of a poll leaves: the unit's new state, its due time, the poll's row.
//!
//! Pure, and run inside the store's transaction: only there is it known which records were new.

use weir_rules::interval::{Chosen, Floors, Span, Why, next_due};
use weir_rules::miad::{self, Miad};
use weir_rules::model::{Fault, Timestamp};
use weir_rules::unit::{Completed, End, Last, Settings, UnitState, Waiting};
use weir_rules::walk::{Ending, Tally, Walk};

use super::{Outcome, Report};
use crate::config::Quiet;
use crate::connection::Stream;
use crate::store::{Conclusion, PollRow};

/// What a poll's end makes of its unit.
pub(super) struct Concluded {
    pub(super) state: UnitState,
    pub(super) outcome: Outcome,
    pub(super) fault: Option<Fault>,
    pub(super) message: Option<String>,
    pub(super) due: Option<Timestamp>,
    pub(super) more: bool,
    pub(super) interval: u64,
    pub(super) why: String,
    /// What is promised of the interval and not kept.
    pub(super) unkept: Option<String>,
    /// The walk whose validators are kept; those of earlier walks are forgotten.
    pub(super) keep_validators_of: Option<u64>,
    /// It was a side walk: the unit's due time, and how its last poll ended, stay.
    pub(super) side: bool,
}

impl Concluded {
    /// What waits until then, whichever walk of the unit it is that stays where it is.
    pub(super) fn resting(
        state: UnitState,
        outcome: Outcome,
        until: Timestamp,
        now: Timestamp,
        why: String,
    ) -> Concluded {
        Concluded {
            state,
            outcome,
            fault: None,
            message: Some(why.clone()),
            due: Some(until),
            more: false,
            interval: until.saturating_sub(now).max(0).unsigned_abs(),
            unkept: None,
            why,
            keep_validators_of: None,
            side: false,
        }
    }

    /// The next poll does not begin in the stream's quiet hours.
    pub(super) fn around(mut self, quiet: &Quiet) -> Concluded {
        if let Some((end, said)) = self.due.and_then(|due| quiet.end(due)) {
            self.due = Some(end);
            self.why = format!("{}; {said}", self.why);
        }
        self
    }

    /// The rows that it leaves, and what whoever waits is told.
    pub(super) fn store(
        self,
        row: PollRow,
        tally: &Tally,
        settings: &Settings,
    ) -> (Conclusion, Report) {
        let class = self.fault.as_ref().map(|fault| fault.class);
        let message = self.message.or_else(|| row.message.clone());
        let mut state = self.state;
        if !self.side {
            state.last = Some(Last {
                ended: row.ended,
                outcome: self.outcome.name().to_owned(),
                message: message.clone(),
                unkept: self.unkept,
            });
        }
        let report = Report {
            unit: Some(row.key.clone()),
            outcome: self.outcome,
            class,
            message: message.clone(),
            tally: tally.clone(),
            due: self.due,
            more: self.more,
            side_due: state.side_due(settings, row.ended),
        };
        let row = PollRow {
            outcome: self.outcome.name().to_owned(),
            class,
            code: self.fault.map(|fault| fault.code),
            message,
            tally: tally.clone(),
            interval: self.interval,
            why: self.why,
            ..row
        };
        let conclusion = Conclusion {
            state,
            due: (!self.side).then_some(self.due),
            poll: Some(row),
            keep_validators_of: self.keep_validators_of,
            ..Conclusion::default()
        };
        (conclusion, report)
    }
}

/// The walk has ended: the position moves, and the interval follows from what was found.
pub(super) fn walked(
    mut state: UnitState,
    walk: &Walk,
    ending: Ending,
    stream: &Stream,
    tally: &Tally,
    lags: &[i64],
    span: Span,
) -> Concluded {
    let unpublished = stream.settings.unpublished_limits;
    if unpublished && matches!(ending, Ending::Short { .. } | Ending::Stalled) {
        // Incomplete, if only as a whole: a sign of pressure like a page that is.
        state.miad = miad::step(&Miad::default(), state.miad, miad::Call::Failed).state;
    }
    let pressure = unpublished.then_some(state.miad.interval);
    let completed = state.complete(
        walk,
        &End {
            ending,
            settings: &stream.settings,
            tally,
            lags,
            now: span.ended,
            floors: Floors {
                vendor: None,
                pressure,
            },
        },
    );
    let Completed {
        state,
        chosen,
        more,
        remark,
    } = completed;
    let next = next_due(span, chosen.interval, chosen.pause);
    let (outcome, message) = told(ending, walk, tally);
    let unkept = unkept(stream, &chosen, next.overrun, span);
    let why = match &unkept {
        Some(unkept) => format!("{}; {unkept}", chosen.why),
        None => chosen.why.to_string(),
    };
    Concluded {
        due: Some(if more { span.ended } else { next.at }),
        more,
        state,
        outcome,
        fault: None,
        message: both(message, remark),
        interval: chosen.interval,
        unkept,
        why,
        keep_validators_of: Some(walk.number),
        side: false,
    }
}

/// How a walk that has ended is called, and what there is to say of it.
pub(super) fn told(ending: Ending, walk: &Walk, tally: &Tally) -> (Outcome, Option<String>) {
    match ending {
        Ending::Complete if tally.calls > 0 && tally.calls == tally.not_modified => {
            (Outcome::NotModified, None)
        }
        Ending::Complete if walk.brimful && tally.productive() => (
            Outcome::Ok,
            Some("the only page was full: there may be more than the vendor shows".to_owned()),
        ),
        Ending::Complete if tally.set_aside > 0 => (
            Outcome::Ok,
            Some(format!(
                "{} could not be taken and wait for review: `weir review`",
                match tally.set_aside {
                    1 => "1 record".to_owned(),
                    several => format!("{several} records"),
                }
            )),
        ),
        Ending::Complete => (Outcome::Ok, None),
        Ending::Truncated => (
            Outcome::Truncated,
            Some("the vendor would not give all of the window".to_owned()),
        ),
        Ending::Stalled => (
            Outcome::Incomplete,
            Some("the walk went in a circle: the vendor repeats its pages".to_owned()),
        ),
        Ending::Short { total, distinct } => (
            Outcome::Incomplete,
            Some(format!(
                "the vendor counts {total} records and showed {distinct}"
            )),
        ),
    }
}

/// What a poll's row says: one thing, or two.
pub(super) fn both(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}; {other}")),
        (one, other) => one.or(other),
    }
}

/// What is promised of the interval and can't be kept as things stand.
fn unkept(stream: &Stream, chosen: &Chosen, overrun: bool, span: Span) -> Option<String> {
    let seconds = |ms: u64| format!("{} s", ms.div_ceil(1_000));
    let fresh = stream.settings.interval.freshness;
    if let Some(fresh) = fresh.filter(|_| chosen.late) {
        let why = match chosen.why {
            Why::Pressure => "the vendor's slow answers allow no more",
            _ => "the vendor asked for a longer pause",
        };
        return Some(format!(
            "the promised freshness of {} is not kept: {why}",
            seconds(fresh)
        ));
    }
    overrun.then(|| {
        let took = span
            .ended
            .saturating_sub(span.started)
            .max(0)
            .unsigned_abs();
        format!(
            "the poll took longer ({}) than its interval ({})",
            seconds(took),
            seconds(chosen.interval)
        )
    })
}

/// A wait that somebody asked for, or the host's own end: the walk stays where it is.
pub(super) fn paused(
    mut state: UnitState,
    walk: Walk,
    outcome: Outcome,
    until: Timestamp,
    now: Timestamp,
    why: String,
) -> Concluded {
    state.walk = Some(walk);
    state.waiting = (outcome == Outcome::Waiting).then(|| Waiting {
        until,
        why: why.clone(),
    });
    Concluded::resting(state, outcome, until, now, why)
}
