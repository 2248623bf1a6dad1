//! The vendor of the measurements, in a process of its own: what it costs is not counted, and its memory is not
//! inherited by those that are measured.
//!
//! It answers questions on stdin, a line each, with a line of JSON on stdout, and ends when stdin does:
//! `seen`: the calls since this was asked before; `judge PATH`: what a delivered file has and lacks.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_tests::bulk::{Bulk, BulkPaging};
use weir_tests::server::{Server, Stage};

/// Where the records are listed.
pub(super) const PATH: &str = "/bulk";

/// The collection without its records: what a configuration needs to know of it.
pub(super) fn outline() -> Bulk {
    Bulk::new(PATH, 0, BulkPaging::Keyset)
}

#[derive(clap::Args)]
pub(crate) struct Args {
    records: u64,
}

/// The first thing that it says.
#[derive(Serialize, Deserialize)]
struct Hello {
    origin: String,
    bytes: u64,
}

/// The calls since somebody asked before.
#[derive(Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) calls: u64,
    /// When the first of them came.
    pub(super) first: Option<SystemTime>,
}

/// What a delivered file has and lacks.
#[derive(Serialize, Deserialize)]
pub(super) struct Verdict {
    pub(super) lost: u64,
    pub(super) duplicated: u64,
}

/// The hidden subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bulk = Arc::new(Bulk::new(PATH, args.records, BulkPaging::Keyset));
    let mut stage = Stage::new([]);
    stage.bulks.push(Arc::clone(&bulk));
    let server = Server::start(stage)?;
    say(&Hello {
        origin: server.origin(),
        bytes: bulk.bytes(),
    })?;
    for line in std::io::stdin().lines() {
        let line = line?;
        match line.split_once(' ') {
            None if line == "seen" => {
                let seen = bulk.take_seen();
                say(&Seen {
                    calls: seen.calls,
                    first: seen.first,
                })?;
            }
            Some(("judge", path)) => {
                let file = File::open(path).with_context(|| path.to_owned())?;
                let verdict = bulk.judge(BufReader::new(file))?;
                say(&Verdict {
                    lost: verdict.lost,
                    duplicated: verdict.duplicated,
                })?;
            }
            _ => bail!("not a question: {line}"),
        }
    }
    Ok(())
}

fn say(answer: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(answer)?);
    Ok(())
}

/// The other end: a server that runs.
pub(super) struct Vendor {
    child: Child,
    ask: Option<ChildStdin>,
    hear: BufReader<ChildStdout>,
    /// Where it listens.
    pub(super) origin: String,
    /// Records that it has.
    pub(super) records: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

impl Vendor {
    pub(super) fn start(records: u64) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("bench-server")
            .arg(records.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ask = child.stdin.take();
        let hear = child.stdout.take().context("the server has no stdout")?;
        let mut vendor = Vendor {
            child,
            ask,
            hear: BufReader::new(hear),
            origin: String::new(),
            records,
            bytes: 0,
        };
        let hello: Hello = vendor.hear()?;
        vendor.origin = hello.origin;
        vendor.bytes = hello.bytes;
        Ok(vendor)
    }

    /// The calls since this was asked before.
    pub(super) fn seen(&mut self) -> anyhow::Result<Seen> {
        self.ask("seen")
    }

    /// What this file has and lacks.
    pub(super) fn judge(&mut self, path: &std::path::Path) -> anyhow::Result<Verdict> {
        self.ask(&format!("judge {}", path.display()))
    }

    fn ask<T: DeserializeOwned>(&mut self, question: &str) -> anyhow::Result<T> {
        let mut ask = self.ask.as_ref().context("the server has no stdin")?;
        writeln!(ask, "{question}")?;
        self.hear()
    }

    fn hear<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.hear.read_line(&mut line)?;
        serde_json::from_str(&line).context("the server of the measurements broke down")
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        // It ends at the end of its stdin.
        self.ask.take();
        let _ = self.child.wait();
    }
}
