//! One unit, polled until there is nothing more to ask for, or no patience left.

use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use weir_rules::model::{Reason, Timestamp};
use weir_rules::walk::Tally;

use super::UnitSync;
use crate::control::Said;
use crate::host::Host;
use crate::poll::{Outcome, Report};
use crate::schedule::Asked;
use crate::store::{UnitId, UnitRow};
use crate::verbs::text::moment;

/// How often a unit's poll is looked at while the host stops.
const LOOK: Duration = Duration::from_millis(20);

/// Polls the unit until it is up to date. `patience`, in ms, is how long it may wait for its vendor before anything
/// more arrives: it starts anew with every answer that brought something.
pub(super) async fn drive(
    host: &Host,
    unit: UnitRow,
    full: bool,
    patience: u64,
    progress: mpsc::Sender<Said>,
) -> UnitSync {
    let name = unit.key.to_string();
    let mut reason = if full {
        Reason::Resync
    } else {
        Reason::SyncNow
    };
    let mut tally = Tally::default();
    let mut polls = 0;
    let mut waited = 0;
    let last = loop {
        let asked = host.scheduler.ask(unit.id, reason);
        if asked.0 == Asked::Joined {
            let text = format!("{name}: is being polled already: joining that poll");
            // A caller who left does not need to hear it.
            let _ = progress.send(Said::Line(text)).await;
        }
        let Some(report) = answered(host, unit.id, asked).await else {
            break Report {
                outcome: Outcome::Stopped,
                message: Some("the host was told to stop".to_owned()),
                ..Report::default()
            };
        };
        polls += 1;
        tally = tally.plus(&report.tally);
        if report.tally.records > 0 || report.tally.not_modified > 0 {
            waited = 0;
        }
        if has_walked(report.outcome) {
            // The next slice of a resync is read on from where this one ended, not from the start again.
            reason = Reason::SyncNow;
        }
        if report.more && !host.stop.stopped() {
            continue;
        }
        let now = host.clock.wall();
        match wait(&report, now) {
            Some(wait) if waited + wait <= patience && !host.stop.stopped() => {
                waited += wait;
                let why = report.message.as_deref().unwrap_or(report.outcome.name());
                let until = now.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX));
                let text = format!("{name}: waits until {}: {why}", moment(until));
                // A caller who left does not need to hear it.
                let _ = progress.send(Said::Line(text)).await;
                tokio::select! {
                    () = host.clock.sleep(Duration::from_millis(wait)) => {}
                    () = host.stop.stopping() => {}
                }
            }
            _ => break report,
        }
    };
    UnitSync {
        unit: name,
        outcome: last.outcome,
        class: last.class,
        message: last.message,
        tally,
        polls,
        due: last.due,
        gaps: gaps(host, unit.id),
    }
}

/// The walk has come to its end, whatever it found on its way.
fn has_walked(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Ok | Outcome::NotModified | Outcome::Truncated | Outcome::Incomplete
    )
}

/// How long to wait, in ms, before asking again is any use; none where waiting does not help.
fn wait(report: &Report, now: Timestamp) -> Option<u64> {
    matches!(report.outcome, Outcome::Waiting | Outcome::Failed)
        .then_some(report.due)
        .flatten()
        // A poll that fails at once and is due at once must not spin.
        .map(|due| due.saturating_sub(now).max(10).unsigned_abs())
}

/// None: the host stops, and the unit's turn did not come.
async fn answered(
    host: &Host,
    unit: UnitId,
    (asked, mut report): (Asked, oneshot::Receiver<Report>),
) -> Option<Report> {
    if asked == Asked::Unknown {
        return Some(Report {
            message: Some("it is not polled any more".to_owned()),
            ..Report::default()
        });
    }
    tokio::select! {
        report = &mut report => return report.ok(),
        () = host.stop.stopping() => {}
    }
    // A poll that is in flight ends within its current call; one that has not begun never will.
    loop {
        let running = host.scheduler.queue().is_running(unit);
        match report.try_recv() {
            Ok(report) => return Some(report),
            Err(TryRecvError::Empty) if running => host.clock.sleep(LOOK).await,
            Err(_) => return None,
        }
    }
}

fn gaps(host: &Host, unit: UnitId) -> u64 {
    let row = host.store.unit(unit);
    row.ok()
        .flatten()
        .map_or(0, |row| row.state.gaps.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: Outcome, due: Option<Timestamp>) -> Report {
        Report {
            outcome,
            due,
            ..Report::default()
        }
    }

    #[test]
    fn only_what_passes_by_itself_is_waited_for() {
        assert_eq!(
            wait(&report(Outcome::Waiting, Some(5_000)), 1_000),
            Some(4_000)
        );
        assert_eq!(
            wait(&report(Outcome::Failed, Some(5_000)), 1_000),
            Some(4_000)
        );
        assert_eq!(wait(&report(Outcome::Failed, Some(500)), 1_000), Some(10));
        for outcome in [
            Outcome::Ok,
            Outcome::Parked,
            Outcome::NeedsSignIn,
            Outcome::Incomplete,
        ] {
            assert_eq!(
                wait(&report(outcome, Some(5_000)), 1_000),
                None,
                "{outcome:?}"
            );
        }
        assert_eq!(wait(&report(Outcome::Failed, None), 1_000), None);
    }
}
