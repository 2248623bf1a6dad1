//! The `weir.toml` that reads a seed-made vendor with the `rest` connector, as a careful person would write it from
//! the vendor's documentation.

use std::fmt::Write;

use weir_tests::dice::{Dice, seed_for};
use weir_tests::spec::{CollectionSpec, End, Order, Paging, VendorSpec};
use weir_tests::time::TimeFormat;

use super::vendor::{Promised, TOKEN, spelt};
use super::{chance, pick};

/// Where seed-made vendors live; their `base` follows.
pub(super) const ORIGIN: &str = "https://vendor.example.test";

/// The tables of one connection, named like its vendor.
pub(super) fn connection(dice: &mut Dice, spec: &VendorSpec, promised: Promised) -> String {
    let name = &spec.name;
    let mut text = String::new();
    let mut line = |part: String| {
        text.push_str(&part);
        text.push('\n');
    };
    line(format!("[connection.{name}]"));
    line("connector = \"rest\"".into());
    line(format!("auth = {{ bearer = \"{TOKEN}\" }}"));
    line(format!("\n[connection.{name}.config]"));
    line(format!("base_url = \"{ORIGIN}{}\"", spec.base));
    let mut pacing = Vec::new();
    if spec.free_not_modified {
        pacing.push("not_modified_is_free = true");
    }
    if chance(dice, 0.3) {
        pacing.push("concurrency = 1");
    }
    line(format!("pacing = {{ {} }}", pacing.join(", ")));
    for error in [
        // Waits in the body, and errors that call themselves a success.
        "pointer = \"/retry_after_ms\"\nclass = \"rate-limited\"\nscope = \"credential\"\n\
         wait = { pointer = \"/retry_after_ms\", unit = \"ms\" }",
        "pointer = \"/retry_after\"\nclass = \"rate-limited\"\nscope = \"credential\"\n\
         wait = { pointer = \"/retry_after\", unit = \"s\" }",
        "pointer = \"/ok\"\nequals = false\nclass = \"temporary\"\ncode = \"/error\"",
    ] {
        line(format!("\n[[connection.{name}.config.errors]]\n{error}"));
    }
    let looks = &mut Dice::new(seed_for(spec.seed, "second looks"));
    for collection in &spec.collections {
        line(String::new());
        line(stream(dice, name, collection));
        let mut settings = settings(dice, name, collection, promised);
        if chance(looks, 0.3) {
            // What comes later than the overlap comes within this.
            let settle = promised.overlap * pick(looks, &[2, 6]);
            let _ = writeln!(settings, "settle = \"{}\"", spelt(settle));
        }
        line(settings);
    }
    text
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

/// How the collection is asked and read.
fn stream(dice: &mut Dice, connection: &str, spec: &CollectionSpec) -> String {
    let mut text = format!("[connection.{connection}.config.streams.{}]\n", spec.name);
    let mut key = |name: &str, value: String| {
        let _ = writeln!(text, "{name} = {value}");
    };
    let quoted = |value: &str| format!("\"{value}\"");
    key("path", quoted(&spec.path));
    if !spec.envelope.records.is_empty() {
        key("records", quoted(&pointer(&spec.envelope.records)));
    }
    key("id", quoted("/id"));
    let stamp = match spec.time_format {
        TimeFormat::Rfc3339 | TimeFormat::Rfc3339Ms => quoted("/updated_at"),
        TimeFormat::EpochS => "{ pointer = \"/updated_at\", format = \"epoch_s\" }".into(),
        TimeFormat::EpochMs => "{ pointer = \"/updated_at\", format = \"epoch_ms\" }".into(),
    };
    key("updated_at", stamp);
    key("deleted", quoted("/deleted"));
    key("required", "[\"/id\", \"/rev\", \"/updated_at\"]".into());
    let volatile = if spec.flips {
        "[\"/views\", \"/rev\", \"/updated_at\"]"
    } else {
        "[\"/views\"]"
    };
    key("volatile", volatile.into());
    if !spec.envelope.count.is_empty() {
        key("count", quoted(&pointer(&spec.envelope.count)));
    }
    if !spec.envelope.total.field.is_empty() {
        key("total", quoted(&pointer(&spec.envelope.total.field)));
    }
    let order = match spec.order {
        Order::Ascending => "ascending",
        Order::Descending => "descending",
        Order::Unordered => "unordered",
    };
    if matches!(spec.paging, Paging::Feed { .. }) {
        key("sync", "{ token = \"/cursor\", param = \"cursor\" }".into());
    } else {
        key("order", quoted(order));
    }
    if !spec.filter.since.param.is_empty() {
        key("window", window(spec));
    }
    key("paging", paging(spec));
    if spec.page_size.param.is_empty() {
        key("page_size", spec.page_size.max.to_string());
    } else {
        // Some ask for more than the vendor gives, and get a page of the vendor's own size.
        let asked = if spec.envelope.has_more.is_empty() || spec.result_cap.is_some() {
            spec.page_size.max
        } else {
            spec.page_size.max * pick(dice, &[1, 1, 4])
        };
        key("page_size", asked.to_string());
        key("page_size_param", quoted(&spec.page_size.param));
    }
    key("granularity", quoted(&spelt(spec.granularity_ms)));
    if spec.filter.widest_ms > 0 {
        // A window whose bounds are widened is still narrow enough.
        key("window_cap", quoted(&spelt(spec.filter.widest_ms - 25_000)));
    }
    if let Some(cap) = spec.result_cap
        && chance(dice, 0.5)
    {
        key("result_cap", cap.records.to_string());
    }
    text
}

fn window(spec: &CollectionSpec) -> String {
    let filter = &spec.filter;
    let mut keys = vec![format!("since = \"{}\"", filter.since.param)];
    if !filter.since.inclusive {
        keys.push("since_exclusive = true".into());
    }
    if !filter.until.param.is_empty() {
        keys.push(format!("until = \"{}\"", filter.until.param));
    }
    match filter.format {
        TimeFormat::Rfc3339 | TimeFormat::Rfc3339Ms => {}
        TimeFormat::EpochS => keys.push("format = \"epoch_s\"".into()),
        TimeFormat::EpochMs => keys.push("format = \"epoch_ms\"".into()),
    }
    format!("{{ {} }}", keys.join(", "))
}

fn paging(spec: &CollectionSpec) -> String {
    let mut keys = Vec::new();
    match &spec.paging {
        Paging::Keyset {
            after_time,
            after_id,
        } => {
            keys.push("style = \"keyset\"".to_owned());
            keys.push(format!("after_id = \"{after_id}\""));
            keys.push(format!("after_time = \"{after_time}\""));
        }
        Paging::AfterId { param } => {
            keys.push("style = \"keyset\"".to_owned());
            keys.push(format!("after_id = \"{param}\""));
        }
        Paging::Token {
            param, field, end, ..
        } => {
            keys.push("style = \"token\"".to_owned());
            keys.push(format!("param = \"{param}\""));
            keys.push(format!("token = \"{}\"", pointer(field)));
            // The token that comes with every page ends nothing; `has_more` does, or the empty page.
            debug_assert!(*end != End::HasMoreFalse || !spec.envelope.has_more.is_empty());
        }
        Paging::Page { param, first } => {
            keys.push("style = \"page\"".to_owned());
            keys.push(format!("param = \"{param}\""));
            keys.push(format!("first = {first}"));
        }
        Paging::Offset { param } => {
            keys.push("style = \"offset\"".to_owned());
            keys.push(format!("param = \"{param}\""));
        }
        Paging::Link { .. } => keys.push("style = \"link\"".to_owned()),
        Paging::NextUrl { field, .. } => {
            keys.push("style = \"next_url\"".to_owned());
            keys.push(format!("url = \"{}\"", pointer(field)));
        }
        Paging::Feed { param, field, .. } => {
            keys.push("style = \"token\"".to_owned());
            keys.push(format!("param = \"{param}\""));
            keys.push(format!("token = \"{}\"", pointer(field)));
        }
        Paging::None if spec.filter.since.param.is_empty() => {
            keys.push("style = \"none\"".to_owned());
        }
        Paging::None => {
            keys.push("style = \"keyset\"".to_owned());
            keys.push(format!("after_time = \"{}\"", spec.filter.since.param));
        }
    }
    if !spec.envelope.has_more.is_empty() {
        keys.push(format!(
            "has_more = \"{}\"",
            pointer(&spec.envelope.has_more)
        ));
    }
    format!("{{ {} }}", keys.join(", "))
}

/// How often it is polled, and with which overlap.
fn settings(
    dice: &mut Dice,
    connection: &str,
    spec: &CollectionSpec,
    promised: Promised,
) -> String {
    let (min, max) = promised.interval;
    let strategy = pick(dice, &["yield", "yield", "reset"]);
    let overlap = spelt(promised.overlap);
    let overlap = if chance(dice, 0.5) {
        format!("{{ fixed = \"{overlap}\" }}")
    } else {
        format!("\"{overlap}\"")
    };
    let mut text = format!(
        "[connection.{connection}.streams.{}]\n\
         interval = {{ min = \"{}\", max = \"{}\", strategy = \"{strategy}\" }}\n\
         overlap = {overlap}\n\
         backoff = {{ base = \"{}\", cap = \"{}\" }}\n",
        spec.name,
        spelt(min),
        spelt(max),
        spelt(pick(dice, &[1_000, 5_000])),
        spelt(super::BACKOFF_CAP),
    );
    if spec.filter.widest_ms > 0 {
        let oldest = super::START - spec.writes.initial_span_ms - 120_000;
        let _ = writeln!(text, "start = \"{}\"", TimeFormat::Rfc3339.write(oldest));
    }
    if chance(dice, 0.3) {
        let freshness = min.max(max / 2);
        let _ = writeln!(text, "freshness = \"{}\"", spelt(freshness));
    }
    text
}
