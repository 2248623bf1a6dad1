//! `cargo xtask docs`: a page for each connector in `docs/connectors/`, made of what the connector says of itself and
//! of the notes beside its source.
//!
//! The pages are committed, so that they can be read without a build; `--check` fails when one is not what it would
//! be made now, and `cargo xtask test` asks for that.

mod page;
#[cfg(test)]
mod security;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::Value;
use weir_runtime::Connector;
use weir_runtime::contract::Descriptor;

use crate::{cargo, connectors};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a page is out of date
    #[arg(long)]
    pub(crate) check: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let connectors = connectors::load()?;
    let stale = write(
        &connectors,
        &cargo::root().join("docs/connectors"),
        args.check,
    )?;
    if args.check && !stale.is_empty() {
        bail!("out of date: {}. Run `cargo xtask docs`", stale.join(", "));
    }
    for page in stale {
        eprintln!("written     docs/connectors/{page}");
    }
    Ok(())
}

/// The names of the pages that were, or would be, written.
fn write(
    connectors: &[Arc<Connector>],
    directory: &Path,
    check: bool,
) -> anyhow::Result<Vec<String>> {
    let mut pages = vec![("README.md".to_owned(), page::index(connectors))];
    for connector in connectors {
        let name = connector.name();
        let notes = cargo::root().join("connectors").join(name).join("NOTES.md");
        let notes = fs::read_to_string(&notes)
            .with_context(|| format!("cannot read {}", notes.display()))?;
        let page = page::connector(&example(connector)?, &notes)
            .with_context(|| format!("the page of {name}"))?;
        pages.push((format!("{name}.md"), page));
    }
    let mut stale = Vec::new();
    for (name, text) in pages {
        let path = directory.join(&name);
        if fs::read_to_string(&path).ok().as_deref() == Some(&text) {
            continue;
        }
        if !check {
            fs::create_dir_all(directory)?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        stale.push(name);
    }
    Ok(stale)
}

/// What a connector is with the example of its config schema: streams and origins may follow from the config.
fn example(connector: &Connector) -> anyhow::Result<Descriptor> {
    let schema: Value = serde_json::from_str(&connector.descriptor().config_schema)?;
    let config = schema
        .pointer("/examples/0")
        .with_context(|| format!("the config schema of {} has no example", connector.name()))?;
    connector
        .describe_for(&config.to_string())?
        .map_err(|fault| {
            anyhow::anyhow!(
                "{} refuses its own example: {}",
                connector.name(),
                fault.message
            )
        })
}
