//! What the end of a side walk leaves. Its unit's main walk, due time, interval and last outcome stay as they are.

use weir_rules::fault::Decision;
use weir_rules::interval::{Floors, Span};
use weir_rules::model::{Class, Reason, Timestamp};
use weir_rules::side::SideWait;
use weir_rules::unit::{End, UnitState};
use weir_rules::walk::{Ending, Tally, Walk};

use super::Outcome;
use super::end::{Concluded, both, told};
use super::outcome::Cut;
use crate::connection::Stream;

/// Polls for these reasons are side walks.
pub(super) fn is_aside(reason: Reason) -> bool {
    matches!(reason, Reason::Backfill | Reason::Settle)
}

/// A side walk has ended.
pub(super) fn side_walked(
    state: UnitState,
    walk: &Walk,
    ending: Ending,
    stream: &Stream,
    tally: &Tally,
    lags: &[i64],
    span: Span,
) -> Concluded {
    let pressure = stream
        .settings
        .unpublished_limits
        .then_some(state.miad.interval);
    let mut ended = state.side_complete(
        walk,
        &End {
            ending,
            settings: &stream.settings,
            tally,
            lags,
            now: span.ended,
            floors: Floors::default(),
        },
    );
    if let Some(pressure) = pressure.filter(|pressure| *pressure > 0) {
        ended.state.side_rests(
            span.ended,
            span.ended.saturating_add_unsigned(pressure),
            "the vendor answers slowly",
        );
    }
    let (outcome, message) = told(ending, walk, tally);
    let due = ended.state.side_due(&stream.settings, span.ended);
    Concluded {
        due,
        more: due.is_some_and(|due| due <= span.ended),
        interval: due.map_or(0, |due| {
            due.saturating_sub(span.ended).max(0).unsigned_abs()
        }),
        unkept: None,
        why: match due {
            Some(due) if due <= span.ended => "there is more to fill".to_owned(),
            Some(_) => "the next look back".to_owned(),
            None => "nothing more to fill".to_owned(),
        },
        state: ended.state,
        outcome,
        fault: None,
        message: both(message, ended.remark),
        keep_validators_of: None,
        side: true,
    }
}

impl Cut {
    /// As [`Cut::conclude`], for a side walk.
    pub(super) fn conclude_side(
        self,
        mut state: UnitState,
        mut walk: Walk,
        whole: Tally,
        stream: &Stream,
    ) -> Concluded {
        walk.tally = whole;
        let (fault, decision, history, now, not_before, backoff) = match self {
            Cut::Paused {
                outcome,
                until,
                now,
                why,
            } => return rest(state, Some(walk), outcome, until, now, why),
            Cut::Fault {
                fault,
                decision,
                history,
                now,
                not_before,
                backoff,
                ..
            } => (fault, decision, history, now, not_before, backoff),
        };
        let text = format!("{} {}", fault.code, fault.message);
        state.side.faults = history;
        let later = |at: Timestamp| at.max(not_before);
        let concluded = match decision {
            Decision::Retry { at, why } => {
                let outcome = if fault.class == Class::RateLimited {
                    Outcome::Waiting
                } else {
                    Outcome::Failed
                };
                let why = format!("{text}; {why}");
                rest(state, Some(walk), outcome, later(at), now, why)
            }
            Decision::AskAgain { at } => {
                let why = format!("{text}; the answer is being prepared");
                rest(state, Some(walk), Outcome::Waiting, later(at), now, why)
            }
            Decision::Refresh => {
                let why = format!("{text}; the credential is tried once more");
                rest(state, Some(walk), Outcome::Failed, later(backoff), now, why)
            }
            Decision::SmallerPage { size, at } => {
                state.page_size = Some(size);
                let why = format!("{text}; asking for pages of {size}");
                rest(state, None, Outcome::Failed, later(at), now, why)
            }
            Decision::WalkAgain { at } => {
                let why = format!("{text}; the window is walked again");
                rest(state, None, Outcome::Failed, later(at), now, why)
            }
            // The main walk will find the same, and says so.
            Decision::NeedsSignIn => Concluded {
                due: None,
                ..rest(
                    state,
                    Some(walk),
                    Outcome::NeedsSignIn,
                    now,
                    now,
                    text.clone(),
                )
            },
            Decision::Park | Decision::RecordAndGoOn => {
                state.side_refused(&walk, &text);
                let due = state.side_due(&stream.settings, now);
                Concluded {
                    due,
                    outcome: Outcome::Failed,
                    ..rest(state, None, Outcome::Failed, now, now, text.clone())
                }
            }
        };
        Concluded {
            fault: Some(fault),
            message: Some(text),
            ..concluded
        }
    }
}

/// The side walk stays where it is until then; without one it begins anew.
fn rest(
    mut state: UnitState,
    walk: Option<Walk>,
    outcome: Outcome,
    until: Timestamp,
    now: Timestamp,
    why: String,
) -> Concluded {
    state.side.walk = walk.map(Box::new);
    state.side.waiting = (until > now).then(|| SideWait {
        until,
        from: now,
        why: why.clone(),
    });
    Concluded {
        side: true,
        ..Concluded::resting(state, outcome, until, now, why)
    }
}
