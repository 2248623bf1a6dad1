//! What needs a person: the signals that have passed their thresholds, each with what to do.

use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;
use crate::config::Alert;
use crate::store::ReviewKind;
use crate::verbs::text::{bytes, count, length, moment};

/// Every signal that can alert. The first seven are those that retries would hide.
pub const SIGNALS: [&str; 20] = [
    "retries",
    "oldest-due",
    "sign-in",
    "given-up",
    "unknown",
    "pinned",
    "gaps",
    "not-ready",
    "secret-file",
    "connector-file",
    "long-wait",
    "sink",
    "outbox",
    "dead-letters",
    "set-aside",
    "expiring",
    "refused",
    "skipped",
    "store",
    "copies",
];

/// How long a sink may have taken nothing before that needs a person, in ms.
const SINK_GRACE: u64 = 60_000;

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// One of the [`SIGNALS`].
    pub signal: String,
    /// What it is, and what to do.
    pub text: String,
}

/// What needs a person, the most urgent first.
pub(super) fn needs(limits: &Alert, view: &Snapshot) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |signal: &str, text: String| {
        needs.push(Need {
            signal: signal.to_owned(),
            text,
        });
    };
    let now = view.now;
    let totals = &view.totals;
    if let Some(error) = &view.store_fails {
        need("store", format!("polls can't be stored: {error}"));
    }
    if let Some(copies) = &view.copies
        && let Some(error) = &copies.failed
    {
        need(
            "copies",
            format!(
                "the store can't be copied ({}): {error}",
                match copies.newest {
                    Some(newest) => format!("the newest copy is of {}", moment(newest)),
                    None => "there is no copy".to_owned(),
                }
            ),
        );
    }
    let signed_out: Vec<_> = view
        .connections
        .iter()
        .filter_map(|connection| Some((connection, connection.needs_sign_in.as_ref()?)))
        .collect();
    if signed_out.len() as u64 >= limits.sign_in {
        for (connection, needed) in signed_out {
            need(
                "sign-in",
                format!(
                    "{} needs a sign-in since {}: {}: {}`{}`",
                    connection.name,
                    moment(needed.since),
                    needed.why,
                    match needed.login {
                        true => "",
                        false => "renew its credential, then ",
                    },
                    needed.way_out
                ),
            );
        }
    }
    for connection in &view.connections {
        if let Some(why) = &connection.not_ready {
            need(
                "not-ready",
                format!("{} is not polled: {why}", connection.name),
            );
        }
        if let Some(why) = &connection.secret_file {
            need(
                "secret-file",
                format!(
                    "{}: {why}: what it held before is used on, and a new start would fail",
                    connection.name
                ),
            );
        }
    }
    for failing in &view.failing_files {
        let named = failing.error.starts_with(&failing.file);
        let file = if named {
            String::new()
        } else {
            format!("{}: ", failing.file)
        };
        need(
            "connector-file",
            format!("does not load: {file}{}", failing.error),
        );
    }
    if totals.unknown >= limits.unknown {
        let some = some(&view.named.unknown);
        need(
            "unknown",
            format!(
                "{} parked with a code that nobody has mapped (`weir review` has the answers): {some}",
                count(totals.unknown, "unit")
            ),
        );
    }
    let given_up = totals.given_up;
    if given_up >= limits.given_up {
        let some = some(&view.named.given_up);
        need(
            "given-up",
            format!(
                "{} not tried again until you say so (`weir review`): {some}",
                count(given_up, "unit")
            ),
        );
    }
    for waits in &view.review {
        let (signal, what) = match waits.kind {
            // Those are counted as units, connections and records.
            ReviewKind::Parked | ReviewKind::SignIn | ReviewKind::Record => continue,
            ReviewKind::Unknown => ("unknown", "answers with a code that nobody has mapped"),
            ReviewKind::Refused => (
                "refused",
                "gives answers again and again of which nothing counts",
            ),
            ReviewKind::Skipped => ("skipped", "refuses a part of its list for good"),
            ReviewKind::Expiring => (
                "expiring",
                "fails, and records will soon be gone from its vendor",
            ),
        };
        let some = some(&waits.some);
        let units = count(waits.count, "unit");
        need(
            signal,
            format!("{units}: {what}: {some}: `weir review` has the answers"),
        );
    }
    let gap_age = totals
        .oldest_gap
        .map_or(0, |since| now.saturating_sub(since).max(0).unsigned_abs());
    if totals.gaps >= limits.gaps || (totals.gaps > 0 && gap_age >= limits.gap_age) {
        need(
            "gaps",
            format!(
                "{} open, the oldest for {}: `weir gaps` lists what may be missing",
                count(totals.gaps, "gap"),
                length(gap_age)
            ),
        );
    }
    if view.set_aside > 0 {
        need(
            "set-aside",
            format!(
                "{} that can't be taken set aside: `weir review` shows them",
                count(view.set_aside, "record")
            ),
        );
    }
    if totals.pinned >= limits.pinned {
        let some = some(&view.named.pinned);
        need(
            "pinned",
            format!(
                "{} held at the longest interval by a slow or refusing vendor: {some}",
                count(totals.pinned, "unit")
            ),
        );
    }
    if totals.long_waits > 0 {
        let some = some(&view.named.long_waits);
        need(
            "long-wait",
            format!(
                "{} told by its vendor to wait for more than a day: {some}",
                count(totals.long_waits, "unit")
            ),
        );
    }
    for retries in view.retries.iter().filter(|r| r.times >= limits.retries) {
        need(
            "retries",
            format!(
                "{} retries of connector {} within an hour, all {}",
                retries.times,
                retries.connector,
                retries.class.name()
            ),
        );
    }
    sinks(&mut need, limits, view);
    if view.running.is_some() && view.oldest_due >= limits.oldest_due {
        need(
            "oldest-due",
            format!(
                "the oldest job has been due for {}: the host does not keep up",
                length(view.oldest_due)
            ),
        );
    }
    needs
}

fn sinks(need: &mut impl FnMut(&str, String), limits: &Alert, view: &Snapshot) {
    let now = view.now;
    for sink in &view.sinks {
        if sink.letters_full() {
            need(
                "sink",
                format!(
                    "sink {} has as many refused records as are kept, and tries more of them again and again: decide \
                     about some with `weir review`",
                    sink.name
                ),
            );
        }
        let Some(failing) = sink.failing() else {
            continue;
        };
        if sink.needs_person() {
            need(
                "sink",
                format!(
                    "sink {} is left alone since {}, it needs you: {}; then `weir resume sink.{}`",
                    sink.name,
                    moment(failing.since),
                    failing.error,
                    sink.name
                ),
            );
        } else if now.abs_diff(failing.since) >= SINK_GRACE {
            need(
                "sink",
                format!(
                    "sink {} has taken nothing for {} ({}): {}",
                    sink.name,
                    length(now.abs_diff(failing.since)),
                    count(u64::from(failing.tries), "failure"),
                    failing.error
                ),
            );
        }
    }
    let waits = view
        .outbox
        .oldest
        .map_or(0, |oldest| now.saturating_sub(oldest).max(0).unsigned_abs());
    if let Some(why) = &view.held_back {
        need(
            "outbox",
            format!(
                "the outbox holds {}, its bound (host.outbox) is {}: {why}",
                bytes(view.outbox.bytes),
                bytes(view.outbox_bound)
            ),
        );
    } else if view.running.is_some() && view.outbox.entries > 0 && waits >= limits.outbox_age {
        need(
            "outbox",
            format!(
                "{} for the sinks, the oldest for {}",
                match view.outbox.entries {
                    1 => "1 record waits".to_owned(),
                    entries => format!("{entries} records wait"),
                },
                length(waits)
            ),
        );
    }
    if view.dead_letters > 0 {
        need(
            "dead-letters",
            format!(
                "{} that a sink refused for good: `weir review` shows them",
                count(view.dead_letters, "record")
            ),
        );
    }
}

fn some(named: &[super::Named]) -> String {
    let some: Vec<String> = named
        .iter()
        .map(|named| format!("{} ({})", named.unit, named.what))
        .collect();
    some.join(", ")
}
