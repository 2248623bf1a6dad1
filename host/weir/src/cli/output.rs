//! stdout and stderr without a panic: a reader may be gone at any time.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::{CliError, Common};
use crate::control::{Reply, Request, Said};
use crate::verbs;

/// Where no terminal shows how far a verb is, a line says it this often.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The usual.
    Stdout,
    /// stdout carries records, and nothing else.
    Stderr,
}

/// Prints a reply and returns its exit code.
pub(super) fn print(
    common: &Common,
    request: &Request,
    reply: Reply,
    to: To,
) -> Result<u8, CliError> {
    let text = if common.json {
        let mut line = serde_json::to_string(&reply.body).map_err(CliError::Foreign)?;
        line.push('\n');
        line
    } else {
        verbs::render(request, reply.body).map_err(CliError::Foreign)?
    };
    let written = match to {
        To::Stdout => write(io::stdout().lock(), &text),
        To::Stderr => write(io::stderr().lock(), &text),
    };
    ended(written, reply.exit)
}

/// Prints the answer of a verb that asks no host: `text`, or with `--json` the value.
pub(super) fn answer(
    common: &Common,
    value: &impl serde::Serialize,
    text: &str,
    exit: u8,
) -> Result<u8, CliError> {
    let written = if common.json {
        let mut line = serde_json::to_string(value).map_err(CliError::Foreign)?;
        line.push('\n');
        write(io::stdout().lock(), &line)
    } else {
        write(io::stdout().lock(), text)
    };
    ended(written, exit)
}

fn ended(written: io::Result<()>, exit: u8) -> Result<u8, CliError> {
    match written {
        // Whoever has read enough wants no error of it; what the answer means stands.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Io {
            what: "the answer could not be printed",
            source: error,
        }),
        _ => Ok(exit),
    }
}

fn write(mut out: impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says on stderr what went wrong: `weir: ...`, a line for each problem.
pub(super) fn complain(error: &CliError) {
    let mut text = String::new();
    for line in error.to_string().lines() {
        // Examples are indented and are not problems.
        let prefix = if line.is_empty() || line.starts_with(' ') {
            ""
        } else {
            "weir: "
        };
        text.push_str(&format!("{prefix}{line}\n"));
    }
    // Nobody is left to hear of a failure here.
    let _ = write(io::stderr().lock(), &text);
}

/// Shows on stderr what a verb says while it is at work: lines as they come; how far it is in one place on a
/// terminal, and now and then elsewhere.
pub(super) struct Progress {
    terminal: bool,
    /// The last line on the terminal is a passing one.
    passing: bool,
    said: Instant,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            terminal: io::stderr().is_terminal(),
            passing: false,
            said: Instant::now(),
        }
    }

    pub(super) fn show(&mut self, said: &Said) {
        let text = match said {
            Said::Line(text) => {
                let text = format!("{}{text}\n", self.erased());
                self.passing = false;
                text
            }
            Said::Passing(text) if self.terminal => {
                let text = format!("{}{text}", self.erased());
                self.passing = true;
                text
            }
            Said::Passing(text) if self.said.elapsed() >= PLAIN_EVERY => {
                self.said = Instant::now();
                format!("{text}\n")
            }
            Said::Passing(_) => return,
        };
        // Progress that nobody sees is no reason to stop.
        let _ = write(io::stderr().lock(), &text);
    }

    /// Takes away what is in passing on the terminal.
    pub(super) fn end(&mut self) {
        let text = self.erased();
        self.passing = false;
        let _ = write(io::stderr().lock(), text);
    }

    fn erased(&self) -> &'static str {
        // To the line's start, and clear to its end.
        if self.passing { "\r\x1b[K" } else { "" }
    }
}
