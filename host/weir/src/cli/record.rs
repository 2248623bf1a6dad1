//! `weir record`

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::ask::{Answerer, answer_here, ask_or_open};
use super::output::{To, print};
use super::{CliError, Common, setting};
use crate::control::Request;
use crate::verbs::record::Walks;

/// `weir record`
#[derive(Debug, Args)]
#[command(
    after_help = "Example: weir record --connection shop --stream orders --scrub '/orders/*/email' --out acme-orders/walks\n\
    It polls as the host would, with the connection's credential and under its budgets, and stores nothing: cursors, records\n\
    and due times stay. Credentials, cookies, secrets of the config and fields that secrets go by are left out as it is written."
)]
pub struct Record {
    /// The connection
    #[arg(long, value_name = "NAME")]
    connection: String,
    /// Only this stream [default: every one]
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// This slice of it [default: the first]
    #[arg(long, value_name = "NAME", requires = "stream")]
    partition: Option<String>,
    /// Leave out what stands there in bodies: a JSON pointer, * for any element
    #[arg(long, value_name = "POINTER")]
    scrub: Vec<String>,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = "walks")]
    out: PathBuf,
    /// Calls of each walk, at most
    #[arg(long, value_name = "N", default_value_t = 5)]
    calls: usize,
    /// Begin where the next poll would, with its cursor, not at the start
    #[arg(long)]
    resume: bool,
}

impl Record {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let request = Request::Record {
            connection: self.connection,
            stream: self.stream,
            partition: self.partition,
            scrub: self.scrub,
            calls: self.calls,
            resume: self.resume,
        };
        let config = setting::load(common)?;
        let mut reply = match ask_or_open(config, &request).await? {
            Answerer::Answered(reply) => reply,
            Answerer::Opened(host) => {
                host.prepare(false).await?;
                answer_here(&host, &request).await?
            }
        };
        let mut walks: Walks = serde_json::from_value(reply.body).map_err(CliError::Foreign)?;
        for walk in &mut walks.walks {
            if let Some(text) = walk.text.take() {
                let file = write(&self.out, &walk.name, &text).map_err(|source| CliError::Io {
                    what: "a recorded walk could not be written",
                    source,
                })?;
                walk.file = Some(file.display().to_string());
            }
        }
        reply.body = serde_json::to_value(walks).map_err(CliError::Foreign)?;
        print(common, &request, reply, To::Stdout)
    }
}

/// Writes a file beside those that are there.
fn write(dir: &Path, name: &str, text: &str) -> std::io::Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let mut number = 1;
    loop {
        let path = match number {
            1 => dir.join(format!("{name}.json")),
            _ => dir.join(format!("{name}_{number}.json")),
        };
        match fs::File::create_new(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
