//! What a fault, a wait or the host's own end makes of the unit, and of those who share its fate.

use weir_rules::fault::{Alert, Context, Deadline, Decided, Decision, FaultHistory, decide};
use weir_rules::model::{Class, Fault, Scope, Timestamp};
use weir_rules::unit::{Parked, UnitState};
use weir_rules::wait::Wait;
use weir_rules::walk::{Tally, Walk};

use super::Outcome;
use super::end::{Concluded, paused};
use super::handover::Baggage;
use super::run::{Ended, FaultSeen, Poll};
use crate::store::{BudgetKey, BudgetRow, ReviewKind, ShownAnswer};

/// Answers in a row of which nothing counted, after which a person should see one.
const REFUSALS: u32 = 3;

/// The same call is made again.
fn goes_on(decision: &Decision) -> bool {
    !matches!(
        decision,
        Decision::RecordAndGoOn | Decision::WalkAgain { .. } | Decision::SmallerPage { .. }
    )
}

/// How a poll ended that did not end its walk.
pub(super) enum Cut {
    Paused {
        outcome: Outcome,
        until: Timestamp,
        now: Timestamp,
        why: String,
    },
    Fault {
        fault: Fault,
        decision: Decision,
        history: FaultHistory,
        /// The fault came at the walk's first call: it is the unit's position that is lost, not a page token.
        at_first_call: bool,
        now: Timestamp,
        /// Never earlier than this: the vendor's own wait, or what its latency says that it can bear.
        not_before: Timestamp,
        /// Where a decision names no time.
        backoff: Timestamp,
    },
}

impl Poll<'_> {
    /// A step that the vendor refuses for good, in the middle of a walk: the rest of the walk is worth having.
    pub(super) fn skips(&self, fault: &Fault, later_step: bool) -> bool {
        later_step
            && fault.class == Class::Permanent
            && fault.scope == Scope::Unit
            && fault.page_size.is_none()
    }

    /// A step that the vendor does not have, in the middle of a walk of which nothing else is left: the list has ended
    /// with the page before it, or has become shorter meanwhile. Some vendors refuse what lies behind their result cap in
    /// the same way; they do so behind a full page.
    pub(super) fn is_past_the_end(
        &self,
        fault: &Fault,
        status: Option<u16>,
        later_step: bool,
    ) -> bool {
        self.skips(fault, later_step)
            && self.walk.pending.len() == 1
            && match status {
                Some(404) => true,
                Some(400 | 416 | 422) => !self.walk.last_full,
                _ => false,
            }
    }

    /// Decides, and tells those whom it concerns besides this unit. None: the walk has ended by itself.
    pub(super) fn outcome(
        &mut self,
        ended: Ended,
        now: Timestamp,
        baggage: &mut Baggage,
    ) -> Option<Cut> {
        let FaultSeen {
            fault,
            wait,
            answer,
            status: _,
        } = match ended {
            Ended::Walked => return None,
            Ended::Waiting { until, why } => {
                return Some(Cut::Paused {
                    outcome: Outcome::Waiting,
                    until,
                    now,
                    why,
                });
            }
            Ended::Stopped => {
                return Some(Cut::Paused {
                    outcome: Outcome::Stopped,
                    until: now,
                    now,
                    why: "the host was told to stop".to_owned(),
                });
            }
            Ended::GaveWay => {
                return Some(Cut::Paused {
                    outcome: Outcome::GaveWay,
                    until: now,
                    now,
                    why: "made room for what is due; it goes on later".to_owned(),
                });
            }
            Ended::Fault(seen) => *seen,
        };
        let repeats = self.faults().count(fault.class);
        let context = Context {
            now,
            backoff: self.stream.backoff,
            wait,
            deadline: self.deadline(),
        };
        let mut rng = self.host.random.lock();
        let Decided {
            decision,
            history,
            alerts,
        } = decide(&fault, self.faults(), &context, &mut *rng);
        let backoff = self
            .stream
            .backoff
            .draw(repeats.saturating_add(1), &mut *rng);
        drop(rng);
        baggage
            .budgets
            .extend(self.tell(&fault, &decision, &alerts, wait));
        self.show(&fault, &decision, &alerts, answer, now, baggage);
        if !goes_on(&decision) {
            // The next call is another one, or none at all.
            baggage.forget.extend(self.write.take());
        }
        let pressure = if self.stream.settings.unpublished_limits {
            self.state.miad.interval
        } else {
            0
        };
        // Whatever the fault is: a vendor that asked for a wait gets it.
        let asked = wait.map_or(0, |wait| wait.ms);
        Some(Cut::Fault {
            at_first_call: self.walk.step().flatten().is_none(),
            fault,
            decision,
            history,
            now,
            not_before: now.saturating_add_unsigned(pressure.max(asked)),
            backoff: now.saturating_add(i64::try_from(backoff).unwrap_or(i64::MAX)),
        })
    }

    /// Leaves for a person what a person should see.
    fn show(
        &mut self,
        fault: &Fault,
        decision: &Decision,
        alerts: &[Alert],
        answer: Option<ShownAnswer>,
        now: Timestamp,
        baggage: &mut Baggage,
    ) {
        let kind = match decision {
            // The gap that a side walk was to fill tells it.
            Decision::Park | Decision::RecordAndGoOn if self.side => None,
            Decision::Park | Decision::RecordAndGoOn => Some(ReviewKind::Parked),
            Decision::NeedsSignIn => Some(ReviewKind::SignIn),
            _ if fault.class == Class::Unknown => Some(ReviewKind::Unknown),
            _ if fault.class == Class::Incomplete
                && self.faults().count(Class::Incomplete) >= REFUSALS =>
            {
                Some(ReviewKind::Refused)
            }
            _ => None,
        };
        if kind == Some(ReviewKind::Parked) {
            baggage.review.extend(self.reviews.parked());
        }
        let near = alerts
            .iter()
            .any(|alert| matches!(alert, Alert::DeadlineNear { .. }));
        let expiring = near.then_some(ReviewKind::Expiring);
        for kind in kind.into_iter().chain(expiring) {
            let change = self.reviews.fault(kind, fault, answer.clone(), now);
            baggage.review.push(change);
        }
    }

    /// Until when what was not fetched yet is still there.
    fn deadline(&self) -> Option<Deadline> {
        if self.side {
            return None;
        }
        let retention = self.stream.settings.stream.retention?;
        let at = self
            .state
            .watermark?
            .saturating_add(i64::try_from(retention).ok()?);
        Some(Deadline { at, retention })
    }

    /// Says what happened, and holds back those who share the limit. Returns the budgets that this changed.
    fn tell(
        &self,
        fault: &Fault,
        decision: &Decision,
        alerts: &[Alert],
        wait: Option<Wait>,
    ) -> Vec<(BudgetKey, BudgetRow)> {
        let unit = &self.row.key;
        tracing::warn!(
            %unit, class = fault.class.name(), code = fault.code, message = fault.message,
            "the poll ended in a fault"
        );
        for alert in alerts {
            match alert {
                Alert::LongWait { until } => {
                    tracing::warn!(%unit, until, "the vendor asks for a wait of more than a day; it is kept");
                }
                Alert::DeadlineNear { at } => {
                    tracing::error!(%unit, gone_at = at, "records will soon be gone from the vendor, and the unit still fails");
                }
            }
        }
        match decision {
            Decision::Retry { at, .. }
                if fault.class == Class::RateLimited || wait.is_some_and(|wait| wait.ms > 0) =>
            {
                return self.host.ledger.hold(self, fault.scope, *at);
            }
            Decision::NeedsSignIn => {
                self.host
                    .sign_in
                    .need(self.host, &self.connection, fault.text())
            }
            _ => {}
        }
        Vec::new()
    }
}

impl Cut {
    pub(super) fn conclude(self, mut state: UnitState, mut walk: Walk, whole: Tally) -> Concluded {
        walk.tally = whole;
        let (fault, decision, history, at_first_call, now, not_before, backoff) = match self {
            Cut::Paused {
                outcome,
                until,
                now,
                why,
            } => return paused(state, walk, outcome, until, now, why),
            Cut::Fault {
                fault,
                decision,
                history,
                at_first_call,
                now,
                not_before,
                backoff,
            } => (
                fault,
                decision,
                history,
                at_first_call,
                now,
                not_before,
                backoff,
            ),
        };
        let lost_before = state.faults.count(Class::PositionLost) > 0;
        state.faults = history;
        let text = fault.text();
        let wait = |state, walk, outcome, at: Timestamp, why: String| {
            paused(state, walk, outcome, at.max(not_before), now, why)
        };
        let concluded = match decision {
            Decision::Retry { at, why } => {
                let outcome = if fault.class == Class::RateLimited {
                    Outcome::Waiting
                } else {
                    Outcome::Failed
                };
                wait(state, walk, outcome, at, format!("{text}; {why}"))
            }
            Decision::AskAgain { at } => wait(
                state,
                walk,
                Outcome::Waiting,
                at,
                format!("{text}; the answer is being prepared"),
            ),
            Decision::Refresh => wait(
                state,
                walk,
                Outcome::Failed,
                backoff,
                format!("{text}; the credential is tried once more"),
            ),
            Decision::SmallerPage { size, at } => {
                state.page_size = Some(size);
                let mut concluded = wait(
                    state,
                    walk,
                    Outcome::Failed,
                    at,
                    format!("{text}; asking for pages of {size}"),
                );
                concluded.state.walk = None;
                concluded
            }
            Decision::WalkAgain { at } => {
                // A page token that expired loses its walk; a cursor that did loses the unit's position. What is known of
                // the records stays, so that nothing is delivered twice.
                if at_first_call || lost_before {
                    state.cursor = None;
                }
                let mut concluded = wait(
                    state,
                    walk,
                    Outcome::Failed,
                    at,
                    format!("{text}; the window is walked again"),
                );
                concluded.state.walk = None;
                concluded
            }
            Decision::NeedsSignIn => Concluded {
                due: None,
                ..wait(state, walk, Outcome::NeedsSignIn, now, text.clone())
            },
            Decision::Park | Decision::RecordAndGoOn => {
                state.parked = Some(Parked {
                    since: now,
                    class: fault.class,
                    code: fault.code.clone(),
                    message: fault.message.clone(),
                    given_up: false,
                });
                Concluded {
                    due: None,
                    ..wait(state, walk, Outcome::Parked, now, text.clone())
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
