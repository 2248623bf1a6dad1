//! What one would write by hand for exactly one API: the floors that weir is measured against.
//!
//! `copy` follows the pages and writes the records out, one a line. `dedup` takes the SHA-256 of each record besides
//! and keeps it in redb under the record's id, one durable transaction a page, so that a second run would write out
//! only what has changed. Neither survives a fault, a limit or a crash in the middle of a page.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use redb::{Database, TableDefinition};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

const HASHES: TableDefinition<'_, &str, [u8; 32]> = TableDefinition::new("hashes");

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Copy,
    Dedup,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    kind: Kind,
    /// The collection's URL
    url: String,
    page_size: u32,
    /// A new directory to write into
    dir: PathBuf,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    has_more: bool,
}

/// What of a record is needed to go on after it, and to tell it from others.
#[derive(Deserialize)]
struct Position<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    updated_at: &'a str,
}

/// The hidden subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(read_all(args))
}

async fn read_all(args: &Args) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(args.dir.join("out.ndjson"))?);
    let hashes = match args.kind {
        Kind::Copy => None,
        Kind::Dedup => Some(Database::create(args.dir.join("hashes.redb"))?),
    };
    let client = reqwest::Client::new();
    let first = format!("{}?limit={}", args.url, args.page_size);
    let mut url = first.clone();
    loop {
        let answer = client.get(&url).send().await?.error_for_status()?;
        let body = answer.bytes().await?;
        let page: Page<'_> = serde_json::from_slice(&body)?;
        match &hashes {
            None => copy(&page, &mut out)?,
            Some(hashes) => dedup(&page, hashes, &mut out)?,
        }
        if !page.has_more {
            break;
        }
        let last = page
            .data
            .last()
            .context("an empty page with more to come")?;
        let last: Position<'_> = serde_json::from_str(last.get())?;
        url = format!(
            "{first}&updated_since={}&after_id={}",
            last.updated_at,
            last.id.get()
        );
    }
    out.into_inner()?.sync_all()?;
    Ok(())
}

fn copy(page: &Page<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    for record in &page.data {
        writeln!(out, "{}", record.get())?;
    }
    Ok(())
}

fn dedup(page: &Page<'_>, hashes: &Database, out: &mut impl Write) -> anyhow::Result<()> {
    let transaction = hashes.begin_write()?;
    {
        let mut table = transaction.open_table(HASHES)?;
        for record in &page.data {
            let position: Position<'_> = serde_json::from_str(record.get())?;
            let hash: [u8; 32] = Sha256::digest(record.get()).into();
            let before = table.insert(position.id.get(), hash)?;
            if before.is_none_or(|before| before.value() != hash) {
                writeln!(out, "{}", record.get())?;
            }
        }
    }
    transaction.commit()?;
    Ok(())
}
