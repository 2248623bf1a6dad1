//! One unit, polled until there is nothing more to ask for, or no patience left.

use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use weir_rules::coverage::{Extent, GapSource};
use weir_rules::model::{Reason, Timestamp};
use weir_rules::walk::Tally;

use super::UnitSync;
use crate::control::Said;
use crate::host::Host;
use crate::poll::{Outcome, Report};
use crate::schedule::Asked;
use crate::store::{UnitId, UnitRow};
use crate::verbs::gaps::settings_of;
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
    let mut last = last;
    if has_walked(last.outcome) {
        // Whoever wants to be up to date wants the gaps filled, too, and the second looks taken that are due.
        let aside = drive_aside(host, unit.id, Needs::All, patience, &progress).await;
        tally = tally.plus(&aside.tally);
        polls += aside.polls;
    }
    let gaps = gaps(host, unit.id);
    if last.outcome == Outcome::Truncated && gaps == 0 {
        last.outcome = Outcome::Ok;
        last.message = None;
    }
    UnitSync {
        unit: name,
        outcome: last.outcome,
        class: last.class,
        message: last.message,
        tally,
        polls,
        due: last.due,
        gaps,
    }
}

/// Which side walks are wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) enum Needs {
    /// All that are due.
    All,
    /// Those that read what a person asked for.
    Asked(Extent),
}

/// What side walks brought.
#[derive(Debug, Default)]
pub(in crate::verbs) struct Aside {
    pub(in crate::verbs) tally: Tally,
    pub(in crate::verbs) polls: u64,
    pub(in crate::verbs) last: Option<Report>,
}

/// Makes the unit's side walks one after the other, until there is none left to make now.
pub(in crate::verbs) async fn drive_aside(
    host: &Host,
    unit: UnitId,
    needs: Needs,
    patience: u64,
    progress: &mpsc::Sender<Said>,
) -> Aside {
    let mut aside = Aside::default();
    let mut waited = 0;
    while !host.stop.stopped() && is_needed(host, unit, needs) {
        let asked = host.scheduler.ask(unit, Reason::Backfill);
        let Some(report) = answered(host, unit, asked).await else {
            break;
        };
        aside.polls += 1;
        aside.tally = aside.tally.plus(&report.tally);
        if report.tally.records > 0 {
            waited = 0;
        }
        let (outcome, due) = (report.outcome, report.side_due);
        let now = host.clock.wall();
        let wait = due.map(|due| due.saturating_sub(now).max(0).unsigned_abs());
        if aside.polls.is_multiple_of(SAID_EVERY) {
            let text = format!("fills gaps: {} records", aside.tally.records);
            // A caller who left does not need to hear it.
            let _ = progress.send(Said::Passing(text)).await;
        }
        let why = report.message.clone().unwrap_or_default();
        aside.last = Some(report);
        match (outcome, wait) {
            (Outcome::Skipped | Outcome::NeedsSignIn, _) | (_, None) => break,
            (_, Some(0)) => {}
            (Outcome::Waiting | Outcome::Failed | Outcome::Incomplete, Some(wait))
                if waited + wait <= patience =>
            {
                waited += wait;
                let until = now.saturating_add_unsigned(wait);
                let text = format!("fills gaps: waits until {}: {why}", moment(until));
                let _ = progress.send(Said::Line(text)).await;
                tokio::select! {
                    () = host.clock.sleep(Duration::from_millis(wait)) => {}
                    () = host.stop.stopping() => {}
                }
            }
            _ => break,
        }
    }
    aside
}

/// Side walks between two words of how far it is.
const SAID_EVERY: u64 = 20;

fn is_needed(host: &Host, unit: UnitId, needs: Needs) -> bool {
    let Ok(Some(row)) = host.store.unit(unit) else {
        return false;
    };
    let Some(settings) = settings_of(host, &row) else {
        return false;
    };
    let due = row.state.side_due(&settings, host.clock.wall());
    match needs {
        Needs::All => due.is_some_and(|due| due <= host.clock.wall()),
        Needs::Asked(extent) => row.state.gaps.iter().any(|gap| {
            gap.source == GapSource::Asked
                && gap.lost.is_none()
                && gap.extent.common(extent).is_some()
        }),
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
        .map_or(0, |row| row.state.gaps.pending().count() as u64)
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
