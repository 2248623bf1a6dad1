//! `cargo xtask reference`: what others have measured of their way of polling, beside this host's numbers.
//!
//! The measurements themselves are a test of `weir-tests`, so that they are made with every run of the tests as well;
//! this command runs it and shows what it found.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{build, cargo};

/// Where the test writes what it found.
const OUT: &str = "WEIR_REFERENCE";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the result as one JSON object on the last line
    #[arg(long)]
    json: bool,
}

/// One measurement.
#[derive(Deserialize)]
struct Demo {
    title: String,
    how: String,
    theirs: Value,
    ours: Value,
    holds: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if std::env::var_os("WEIR_CONNECTORS").is_none() {
        eprintln!("building the connectors ...");
        build::connectors()?;
    }
    let out = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(cargo::root())
        .args(["test", "--workspace", "--test", "reference"])
        .args(["--", "--exact", "every_reference_measurement_holds"])
        .env(OUT, out.path())
        .stdout(Stdio::null());
    if std::env::var_os("WEIR_CONNECTORS").is_none() {
        command.env("WEIR_CONNECTORS", build::directory());
    }
    eprintln!("measuring ...");
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    let text = std::fs::read_to_string(out.path())?;
    if text.is_empty() {
        bail!("{command:?} ended with {status} and measured nothing");
    }
    let all: Map<String, Value> = serde_json::from_str(&text)?;
    let mut missed = Vec::new();
    for (key, value) in &all {
        let demo: Demo = serde_json::from_value(value.clone())?;
        println!("{}", table(key, &demo));
        if !demo.holds {
            missed.push(key.as_str());
        }
    }
    if args.json {
        println!("{}", Value::Object(all.clone()));
    }
    if !missed.is_empty() {
        bail!("not reached: {}", missed.join(", "));
    }
    Ok(())
}

fn table(key: &str, demo: &Demo) -> String {
    let mut text = format!("{key}: {} ({})", demo.title, demo.how);
    for (whose, numbers) in [("theirs", &demo.theirs), ("ours", &demo.ours)] {
        let mut rows = Vec::new();
        flatten("", numbers, &mut rows);
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (nth, (name, numbers)) in rows.iter().enumerate() {
            let whose = if nth == 0 { whose } else { "" };
            text.push_str(&format!("\n  {whose:6}  {name:width$}  {numbers}"));
        }
    }
    text.push_str(if demo.holds {
        "\n  holds\n"
    } else {
        "\n  DOES NOT HOLD\n"
    });
    text
}

/// One row for each object that holds numbers: `by_hand.greater`, `got 5, requests 4`.
fn flatten(name: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let Value::Object(members) = value else {
        rows.push((name.to_owned(), value.to_string()));
        return;
    };
    let plain: Vec<String> = members
        .iter()
        .filter(|(_, value)| !value.is_object())
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key} {text}"),
            other => format!("{key} {other}"),
        })
        .collect();
    if !plain.is_empty() {
        rows.push((name.to_owned(), plain.join(", ")));
    }
    for (key, value) in members.iter().filter(|(_, value)| value.is_object()) {
        let name = if name.is_empty() {
            key.clone()
        } else {
            format!("{name}.{key}")
        };
        flatten(&name, value, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_sides_are_shown_row_by_row() {
        let demo = Demo {
            title: "six orders".to_owned(),
            how: "whole host".to_owned(),
            theirs: json!({ "keyset": { "got": 6 } }),
            ours: json!({ "got": 6, "ends": true, "more": { "list": [1, 2] } }),
            holds: true,
        };
        assert_eq!(
            table("cursor", &demo),
            "cursor: six orders (whole host)\n  theirs  keyset  got 6\n  ours          ends true, got 6\n          \
             more  list [1,2]\n  holds\n"
        );
    }
}
