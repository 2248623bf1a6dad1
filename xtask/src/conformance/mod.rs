//! `cargo xtask conformance DIR`: what the connectors and the limit parser make of answers that vendors really gave.
//!
//! Reads every recording below a directory, finds the connector that speaks to that vendor (or `rest`, with a
//! configuration that is read off the recording), walks through the recorded pages as a poll would, and prints what
//! became of each answer. It fails when a connector traps, when a fault stays without a class, and when an answer's
//! records do not all arrive though the answer was taken as good.
//!
//! It promises nothing about requests: a recording may come from an endpoint that the connector has no stream for. Such an
//! answer is read as the stream that makes most of it, and the report says so.

mod feed;
mod guess;
mod recording;
mod report;
#[cfg(test)]
mod tests;
mod vendor;

use std::path::PathBuf;

use anyhow::bail;

use crate::connectors;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory with the recordings (*.json, at any depth)
    dir: PathBuf,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let recordings = recording::all(&args.dir)?;
    let connectors = connectors::load()?;
    let results: Vec<feed::Fed> = recordings
        .iter()
        .flat_map(|recording| feed::recording(recording, &connectors))
        .collect();
    report::print(&results, args.json);
    let bad = results.iter().filter(|fed| fed.trouble().is_some()).count();
    if bad > 0 {
        bail!("{bad} of {} answers were not dealt with", results.len());
    }
    Ok(())
}
