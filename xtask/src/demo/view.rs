//! What a person sees while the demo runs: a few lines that are drawn anew on a terminal, and plain lines elsewhere.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_tests::ledger::Counts;

use super::host::{Status, Unit};

/// Where no terminal is, all units are shown this often.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// One unit, from all sides.
pub(super) struct Line {
    /// `connection/stream`
    pub(super) unit: String,
    /// The vendor's own numbers.
    pub(super) counts: Counts,
    /// Where its records are delivered.
    pub(super) delivered: Tail,
}

/// The view, on stderr.
pub(super) struct View {
    terminal: bool,
    /// Lines that are drawn and will be overwritten.
    drawn: usize,
    shown: Option<Instant>,
}

impl View {
    pub(super) fn new() -> Self {
        View {
            terminal: std::io::stderr().is_terminal(),
            drawn: 0,
            shown: None,
        }
    }

    /// Something that happens once, and stays.
    pub(super) fn say(&mut self, text: &str) {
        self.put(&format!("{}{text}\n", self.back()));
        self.drawn = 0;
    }

    /// How everything is now. `head` is one line.
    pub(super) fn show(&mut self, head: &str, lines: &mut [Line], status: Option<&Status>) {
        for line in &mut *lines {
            line.delivered.read();
        }
        let is_due = self
            .shown
            .is_none_or(|shown| self.terminal || shown.elapsed() >= PLAIN_EVERY);
        if !is_due {
            return;
        }
        self.shown = Some(Instant::now());
        let mut text = String::new();
        for line in
            std::iter::once(head.to_owned()).chain(lines.iter().map(|line| row(line, status)))
        {
            let clear = if self.terminal { "\x1b[K" } else { "" };
            let _ = writeln!(text, "{line}{clear}");
        }
        // Lines that are too long are cut off, not wrapped: else the way back up would be longer.
        let text = match self.terminal {
            true => format!("\x1b[?7l{}{text}\x1b[?7h", self.back()),
            false => text,
        };
        self.put(&text);
        self.drawn = lines.len() + 1;
    }

    /// Back to where the lines begin that may be overwritten.
    fn back(&self) -> String {
        match (self.terminal, self.drawn) {
            (true, 1..) => format!("\x1b[{}A\x1b[J", self.drawn),
            _ => String::new(),
        }
    }

    fn put(&self, text: &str) {
        // Nobody looks any more: the demo goes on all the same.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

fn row(line: &Line, status: Option<&Status>) -> String {
    let state = status.map_or_else(
        || "the host does not answer".to_owned(),
        |status| {
            let unit = status.units.iter().find(|unit| unit.unit == line.unit);
            unit.map_or_else(
                || "not known yet".to_owned(),
                |unit| state(unit, status.now),
            )
        },
    );
    format!(
        "  {:<13} {:>5} lines {:<5} {:>4} calls {:>3} x 304  {state}",
        line.unit,
        line.delivered.lines,
        match line.delivered.fresh {
            0 => String::new(),
            fresh => format!("+{fresh}"),
        },
        line.counts.calls,
        line.counts.not_modified,
    )
}

/// What a unit does now, and why.
fn state(unit: &Unit, now: i64) -> String {
    if let Some(parked) = &unit.parked {
        return format!("parked: {}", parked.message);
    }
    if unit.polling {
        return "is polled".to_owned();
    }
    let seconds = |until: i64| (until - now).max(0) as f64 / 1000.0;
    let why = unit
        .message
        .as_deref()
        .map_or_else(String::new, |why| format!(": {why}"));
    if let Some(until) = unit.waiting_until.filter(|until| *until > now) {
        return format!("waits {:.1} s{why}", seconds(until));
    }
    let due = match unit.due {
        Some(due) => format!("next in {:.1} s", seconds(due)),
        None => "not due".to_owned(),
    };
    match unit.outcome.as_deref() {
        None | Some("ok") => due,
        Some(outcome) => format!("{due}, {outcome}{why}"),
    }
}

/// Counts the lines of a file that grows.
pub(super) struct Tail {
    path: PathBuf,
    read: u64,
    lines: u64,
    /// Lines since it was looked at before.
    fresh: u64,
}

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Tail {
            path,
            read: 0,
            lines: 0,
            fresh: 0,
        }
    }

    fn read(&mut self) {
        let mut added = Vec::new();
        // No file yet, no lines yet.
        let _ = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut added)
        });
        self.read += added.len() as u64;
        self.fresh = added.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.lines += self.fresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(json: &str) -> Unit {
        let mut unit: serde_json::Value = serde_json::from_str(
            r#"{"unit":"shop/orders","polling":false,"outcome":"ok","message":null,"due":11500,
                "waiting_until":null,"parked":null}"#,
        )
        .unwrap();
        let changes: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(json).unwrap();
        for (key, value) in changes {
            unit[key] = value;
        }
        serde_json::from_value(unit).unwrap()
    }

    #[test]
    fn a_unit_says_what_it_does_and_why() {
        for (changes, said) in [
            ("{}", "next in 1.5 s"),
            (r#"{"polling":true}"#, "is polled"),
            (
                r#"{"waiting_until":12000,"message":"429"}"#,
                "waits 2.0 s: 429",
            ),
            (
                r#"{"outcome":"failed","message":"503"}"#,
                "next in 1.5 s, failed: 503",
            ),
            (
                r#"{"outcome":"not-modified"}"#,
                "next in 1.5 s, not-modified",
            ),
            (r#"{"parked":{"message":"418"}}"#, "parked: 418"),
        ] {
            assert_eq!(state(&unit(changes), 10_000), said);
        }
    }

    #[test]
    fn a_file_is_counted_as_it_grows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.ndjson");
        let mut tail = Tail::new(path.clone());
        tail.read();
        assert_eq!(tail.lines, 0);
        std::fs::write(&path, "a\nb\nhal").unwrap();
        tail.read();
        assert_eq!((tail.lines, tail.fresh), (2, 2));
        std::fs::write(&path, "a\nb\nhalf\n").unwrap();
        tail.read();
        assert_eq!((tail.lines, tail.fresh), (3, 1));
    }
}
