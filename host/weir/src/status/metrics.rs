//! The metrics: every number of [`Snapshot`] and [`Meters`](super::Meters) that an operator watches, by the names that
//! operators know.
//!
//! Labels are connections, streams, connectors, sinks, classes and outcomes, of which there are as many as the
//! configuration names. No unit, no id, no URL and no secret is ever a label.

use super::exposition::Page;
use super::meters::{Counts, StreamCounts};
use super::snapshot::Snapshot;
use super::{Latencies, SIGNALS};
use weir_rules::walk::Tally;

/// The whole page.
pub(super) fn page(view: &Snapshot, counts: &Counts, commits: u64) -> String {
    let mut page = Page::default();
    page.gauge("weir_build_info", "The version that runs.")
        .count(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    signals(&mut page, view, counts);
    polls(&mut page, counts);
    states(&mut page, view);
    delivery(&mut page, view);
    budgets(&mut page, view);
    page.counter(
        "weir_store_commits_total",
        "Transactions that the store has committed.",
    )
    .count(&[], commits);
    if let Some(copies) = &view.copies
        && let Some(newest) = copies.newest
    {
        let age = view.now.saturating_sub(newest).max(0).unsigned_abs();
        page.gauge(
            "weir_store_copy_age_seconds",
            "How old the newest copy of the store is.",
        )
        .sample(&[], seconds(age));
    }
    page.counter(
        "weir_store_failures_total",
        "Polls that could not be stored.",
    )
    .count(&[], counts.not_stored);
    page.finish()
}

/// The seven signals that retries would hide, and the alerts.
fn signals(page: &mut Page, view: &Snapshot, counts: &Counts) {
    let mut family = page.counter(
        "weir_retries_total",
        "Polls that ended in a fault which is tried again, by connector and class.",
    );
    for ((connector, class), times) in &counts.retries {
        family.count(&[("connector", connector), ("class", class.name())], *times);
    }
    page.gauge(
        "weir_oldest_due_seconds",
        "For how long the oldest job that is due has been due. The first alert to have.",
    )
    .sample(&[], seconds(view.oldest_due));
    let mut family = page.counter(
        "weir_sign_ins_needed_total",
        "How often a connection has come to need a sign-in.",
    );
    for (connection, times) in &counts.sign_ins {
        family.count(&[("connection", connection)], *times);
    }
    let mut family = page.gauge(
        "weir_needs_sign_in",
        "1 while the connection waits for a person to sign in.",
    );
    for connection in &view.connections {
        let needed = u64::from(connection.needs_sign_in.is_some());
        family.count(&[("connection", &connection.name)], needed);
    }
    let mut family = page.counter(
        "weir_given_up_total",
        "Polls after which a unit was not tried again by itself, by connector and class.",
    );
    for ((connector, class), times) in &counts.given_up {
        family.count(&[("connector", connector), ("class", class.name())], *times);
    }
    page.gauge(
        "weir_units_given_up",
        "Units that ran out of retries or were refused for good.",
    )
    .count(&[], view.totals.given_up);
    page.gauge(
        "weir_units_unknown",
        "Units that were parked with a code that nobody has mapped.",
    )
    .count(&[], view.totals.unknown);
    page.gauge(
        "weir_records_set_aside",
        "Records that could not be taken and wait for a person.",
    )
    .count(&[], view.set_aside);
    let mut family = page.gauge(
        "weir_units_pinned",
        "Units that a slow vendor holds at the longest interval.",
    );
    for stream in &view.streams {
        let labels = [
            ("connection", stream.connection.as_str()),
            ("stream", &stream.stream),
        ];
        family.count(&labels, stream.totals.pinned);
    }
    let mut family = page.gauge(
        "weir_units_still",
        "Units that are polled and bring nothing new, for longer than ever.",
    );
    for stream in &view.streams {
        let labels = [
            ("connection", stream.connection.as_str()),
            ("stream", &stream.stream),
        ];
        family.count(&labels, stream.totals.still);
    }
    let mut family = page.gauge(
        "weir_units_disordered",
        "Units that are listed in another order than their connector says.",
    );
    for stream in &view.streams {
        let labels = [
            ("connection", stream.connection.as_str()),
            ("stream", &stream.stream),
        ];
        family.count(&labels, stream.totals.disordered);
    }
    let mut family = page.gauge(
        "weir_gaps_open",
        "Parts of streams that may hold records which never arrived.",
    );
    for stream in &view.streams {
        let labels = [
            ("connection", stream.connection.as_str()),
            ("stream", &stream.stream),
        ];
        family.count(&labels, stream.totals.gaps);
    }
    let age = view.totals.oldest_gap.map_or(0, |since| {
        view.now.saturating_sub(since).max(0).unsigned_abs()
    });
    page.gauge(
        "weir_gap_oldest_seconds",
        "How long the oldest open gap is known.",
    )
    .sample(&[], seconds(age));
    let mut family = page.gauge(
        "weir_alert",
        "1 while a signal has passed its threshold (`[alert]` in weir.toml) and needs a person.",
    );
    for signal in SIGNALS {
        let on = view.needs.iter().any(|need| need.signal == signal);
        family.count(&[("signal", signal)], u64::from(on));
    }
}

fn polls(page: &mut Page, counts: &Counts) {
    let mut family = page.counter("weir_polls_total", "Polls that ended and were stored.");
    for ((connection, stream), of) in &counts.streams {
        for (outcome, times) in &of.polls {
            let labels = [
                ("connection", connection.as_str()),
                ("stream", stream),
                ("outcome", outcome),
            ];
            family.count(&labels, *times);
        }
    }
    type Read = fn(&StreamCounts) -> u64;
    let tallied: [(&'static str, &str, Read); 6] = [
        ("weir_calls_total", "HTTP requests.", |of| of.tally.calls),
        (
            "weir_not_modified_total",
            "HTTP requests that were answered with 304.",
            |of| of.tally.not_modified,
        ),
        (
            "weir_received_bytes_total",
            "Decoded bytes of the answers' bodies.",
            |of| of.tally.bytes,
        ),
        (
            "weir_received_records_total",
            "Records in the answers, known ones included.",
            |of| of.tally.records,
        ),
        (
            "weir_full_pages_total",
            "Polls that found a full page: there may have been more.",
            |of| of.full_pages,
        ),
        (
            "weir_late_records_total",
            "New and changed records that every poll had missed and a second look found.",
            |of| of.late,
        ),
    ];
    for (name, help, read) in tallied {
        let mut family = page.counter(name, help);
        for ((connection, stream), of) in &counts.streams {
            let labels = [("connection", connection.as_str()), ("stream", stream)];
            family.count(&labels, read(of));
        }
    }
    let mut family = page.counter("weir_records_total", "Records, by what dedup made of them.");
    for ((connection, stream), of) in &counts.streams {
        for (what, number) in kinds(&of.tally) {
            let labels = [
                ("connection", connection.as_str()),
                ("stream", stream),
                ("result", what),
            ];
            family.count(&labels, number);
        }
    }
    let mut family = page.histogram(
        "weir_call_duration_seconds",
        "How long calls took, whatever the answer.",
    );
    for (connection, latencies) in &counts.latencies {
        for (bound, number) in latencies.cumulative() {
            let le = seconds(bound).to_string();
            let labels = [("connection", connection.as_str()), ("le", &le)];
            family.part("_bucket", &labels, number as f64);
        }
        totals(&mut family, connection, latencies);
    }
}

fn totals(family: &mut super::exposition::Family<'_>, connection: &str, latencies: &Latencies) {
    let all = latencies.total() as f64;
    family.part(
        "_bucket",
        &[("connection", connection), ("le", "+Inf")],
        all,
    );
    family.part(
        "_sum",
        &[("connection", connection)],
        seconds(latencies.sum()),
    );
    family.part("_count", &[("connection", connection)], all);
}

fn kinds(tally: &Tally) -> [(&'static str, u64); 4] {
    [
        ("new", tally.new),
        ("changed", tally.changed),
        ("unchanged", tally.unchanged),
        ("deleted", tally.deleted),
    ]
}

fn states(page: &mut Page, view: &Snapshot) {
    let mut family = page.gauge(
        "weir_units",
        "Units by how much they need a look: parked, gap, failing, waiting, still, new, fine.",
    );
    for stream in &view.streams {
        for (state, number) in &stream.totals.units {
            let labels = [
                ("connection", stream.connection.as_str()),
                ("stream", &stream.stream),
                ("state", state),
            ];
            family.count(&labels, *number);
        }
    }
    let mut family = page.gauge(
        "weir_overlap_seconds",
        "How far before the watermark polls of the stream begin: the widest of its units.",
    );
    for stream in &view.streams {
        let labels = [
            ("connection", stream.connection.as_str()),
            ("stream", &stream.stream),
        ];
        family.sample(&labels, seconds(stream.totals.overlap));
    }
    page.gauge("weir_polls_in_flight", "Polls in flight.")
        .count(&[], view.totals.polling);
    page.gauge(
        "weir_units_unkept",
        "Units of which something that is promised of their interval is not kept.",
    )
    .count(&[], view.totals.unkept);
    let mut family = page.gauge(
        "weir_connection_ready",
        "1 while the connection can be polled.",
    );
    for connection in &view.connections {
        let ready = !connection.starting && connection.not_ready.is_none();
        family.count(&[("connection", &connection.name)], u64::from(ready));
    }
}

fn delivery(page: &mut Page, view: &Snapshot) {
    page.gauge("weir_outbox_entries", "Records that wait for a sink.")
        .count(&[], view.outbox.entries);
    page.gauge(
        "weir_outbox_bytes",
        "Bytes of the records that wait for a sink.",
    )
    .count(&[], view.outbox.bytes);
    let age = view.outbox.oldest.map_or(0, |oldest| {
        view.now.saturating_sub(oldest).max(0).unsigned_abs()
    });
    page.gauge(
        "weir_outbox_oldest_seconds",
        "How long the oldest record has waited for a sink.",
    )
    .sample(&[], seconds(age));
    page.gauge("weir_dead_letters", "Records that a sink refused for good.")
        .count(&[], view.dead_letters);
    let of = |sink: &super::SinkStatus| sink.delivery.clone().unwrap_or_default();
    let mut family = page.counter("weir_deliveries_total", "Records that the sink has taken.");
    for sink in &view.sinks {
        family.count(&[("sink", &sink.name)], of(sink).delivered);
    }
    let mut family = page.counter(
        "weir_deliveries_refused_total",
        "Records that the sink refused for good.",
    );
    for sink in &view.sinks {
        family.count(&[("sink", &sink.name)], of(sink).dead);
    }
    let mut family = page.counter(
        "weir_delivery_failures_total",
        "Tries at which the sink took nothing.",
    );
    for sink in &view.sinks {
        family.count(&[("sink", &sink.name)], of(sink).failures);
    }
    let mut family = page.gauge(
        "weir_sink_failing_tries",
        "Tries in a row at which the sink took nothing.",
    );
    for sink in &view.sinks {
        let tries = of(sink).failing.map_or(0, |failing| failing.tries);
        family.count(&[("sink", &sink.name)], u64::from(tries));
    }
}

fn budgets(page: &mut Page, view: &Snapshot) {
    let scope = |scope| match scope {
        weir_rules::model::Scope::Unit => "unit",
        weir_rules::model::Scope::Connection => "connection",
        weir_rules::model::Scope::Credential => "credential",
        weir_rules::model::Scope::App => "app",
    };
    let mut family = page.gauge(
        "weir_budget_remaining",
        "What is left of a vendor's limit, as last heard of.",
    );
    for budget in &view.budgets {
        if let Some(remaining) = budget.remaining {
            let labels = [
                ("connection", budget.connection.as_str()),
                ("scope", scope(budget.scope)),
                ("bucket", &budget.bucket),
            ];
            family.sample(&labels, remaining);
        }
    }
    let mut family = page.gauge("weir_budget_limit", "What a vendor allows per window.");
    for budget in &view.budgets {
        if let Some(limit) = budget.limit {
            let labels = [
                ("connection", budget.connection.as_str()),
                ("scope", scope(budget.scope)),
                ("bucket", &budget.bucket),
            ];
            family.count(&labels, limit);
        }
    }
    let mut family = page.gauge(
        "weir_budget_held_seconds",
        "For how long the vendor allows no call.",
    );
    for budget in &view.budgets {
        let labels = [
            ("connection", budget.connection.as_str()),
            ("scope", scope(budget.scope)),
            ("bucket", &budget.bucket),
        ];
        let held = budget
            .held_until
            .map_or(0, |until| view.now.abs_diff(until));
        family.sample(&labels, seconds(held));
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
