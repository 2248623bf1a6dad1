//! Entries that a sink has refused: tried again, or set aside for a person.
//!
//! A letter holds all that a delivery needs, so it outlives its place in the outbox: a refused record holds up no
//! other one, over a restart neither, and its tries are counted over restarts. It is forgotten when the sink has taken
//! it or a person has dropped it, never by its age.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_rules::model::Timestamp;

use super::{Op, OutboxEntry, RecordData, Sequence, UnitKey};

/// Names a letter for people, as long as it exists: `SINK:NUMBER`, the number being its place in the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LetterId {
    /// The sink's name.
    pub sink: String,
    /// The entry's place in the outbox.
    pub sequence: Sequence,
}

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.sink, self.sequence)
    }
}

/// Not `SINK:NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not the id of a dead letter: those are SINK:NUMBER, for example main:17")]
pub struct NoLetterId;

impl FromStr for LetterId {
    type Err = NoLetterId;

    fn from_str(text: &str) -> Result<Self, NoLetterId> {
        let (sink, sequence) = text.split_once(':').ok_or(NoLetterId)?;
        let digits = !sequence.is_empty() && sequence.bytes().all(|byte| byte.is_ascii_digit());
        match sequence.parse() {
            Ok(sequence) if digits && !sink.is_empty() => Ok(LetterId {
                sink: sink.to_owned(),
                sequence,
            }),
            _ => Err(NoLetterId),
        }
    }
}

/// What is to become of a letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LetterState {
    /// Given up: it waits for a person.
    #[default]
    Dead,
    /// It is tried again, or waits behind an earlier entry of its record.
    Held,
}

/// An entry that a sink has refused, or that waits behind one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The sink's name.
    pub sink: String,
    /// The entry's place in the outbox.
    pub sequence: Sequence,
    /// The delivery's key: `unit/id/revision`.
    pub key: String,
    /// The sink's last word; empty before the first.
    pub error: String,
    /// The line that is to be delivered; of an entry that does not read its bytes in base64.
    pub line: String,
    /// When the sink last refused it.
    pub at: Timestamp,
    /// Tried again, or given up.
    #[serde(default)]
    pub state: LetterState,
    /// How often the sink has refused it since it was put in the outbox or requeued.
    #[serde(default)]
    pub tries: u32,
    /// While held: when it may be tried next, by this machine's clock.
    #[serde(default)]
    pub next: Timestamp,
    /// The `Idempotency-Key` under which it is sent by itself.
    #[serde(default)]
    pub intent: Option<String>,
    /// The sink has taken a later revision of the record, this one: the letter must not go out any more.
    #[serde(default)]
    pub superseded: Option<u64>,
}

impl DeadLetter {
    /// Its name for people.
    pub fn id(&self) -> LetterId {
        LetterId {
            sink: self.sink.clone(),
            sequence: self.sequence,
        }
    }

    /// A person wants it to go out again: then it is as if it had just been put in the outbox. An error says why it
    /// cannot, and leaves it as it is.
    pub(super) fn requeue(&mut self, has_sink: bool) -> Result<(), Requeued> {
        if self.state == LetterState::Held {
            return Err(Requeued::IsTried);
        }
        if let Some(revision) = self.superseded {
            return Err(Requeued::Superseded(revision));
        }
        if self.entry().is_none() {
            return Err(Requeued::Unreadable);
        }
        if !has_sink {
            return Err(Requeued::NoSink);
        }
        self.state = LetterState::Held;
        self.tries = 0;
        self.next = 0;
        // What was answered is answered: a receiver that keeps its answers by key must judge it anew.
        self.intent = None;
        Ok(())
    }

    /// The entry as it was in the outbox; none for one that did not read there.
    pub fn entry(&self) -> Option<OutboxEntry> {
        let line: Line<'_> = serde_json::from_str(&self.line).ok()?;
        let time = |text: &str| {
            let time: jiff::Timestamp = text.parse().ok()?;
            Some(time.as_millisecond())
        };
        Some(OutboxEntry {
            sequence: self.sequence,
            unit: Arc::new(UnitKey {
                connection: line.connection,
                stream: line.stream,
                partition: line.partition,
            }),
            id: line.id,
            revision: line.revision,
            op: line.op,
            updated_at: match &line.updated_at {
                Some(text) => Some(time(text)?),
                None => None,
            },
            seen_at: time(&line.seen_at)?,
            data: RecordData::Text(line.data.get().into()),
        })
    }
}

/// A line of a sink, read back.
#[derive(Deserialize)]
struct Line<'l> {
    connection: String,
    stream: String,
    partition: Option<String>,
    id: String,
    revision: u64,
    op: Op,
    updated_at: Option<String>,
    seen_at: String,
    #[serde(borrow)]
    data: &'l RawValue,
}

/// What has become of entries that a sink was offered: one report, stored as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handled {
    /// Everything up to and including this one is taken or among the letters.
    pub up_to: Sequence,
    /// Letters that are new, or other than before.
    pub letters: Vec<DeadLetter>,
    /// Letters that the sink has taken after all: they are forgotten.
    pub taken: Vec<Sequence>,
    /// Letters of whose record the sink has taken a later revision, and which one. Unknown ones are passed over.
    pub superseded: Vec<(Sequence, u64)>,
    /// The delivery of the sink's stored intent has been answered for good: the intent is forgotten.
    pub settled: bool,
}

impl Handled {
    /// All up to here was taken.
    pub fn up_to(up_to: Sequence) -> Self {
        Handled {
            up_to,
            ..Handled::default()
        }
    }
}

/// A delivery that is about to be tried: stored before its first try, so that every later one, also after a crash,
/// sends the same entries under the same key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The `Idempotency-Key`: a UUID, version 4.
    pub key: String,
    /// The entries, in order.
    pub entries: Vec<Sequence>,
    /// How they are written and where they go: under other settings the delivery would be another one.
    pub form: String,
    /// The receiver's word: no try before this moment of this machine's clock.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
}

/// What became of a person's wish that a dead letter goes out again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requeued {
    /// It goes out again, before later revisions that have not been delivered.
    GoesOut,
    /// It is being tried already.
    IsTried,
    /// The sink has taken this later revision of the record: an older one must not follow it.
    Superseded(u64),
    /// Its bytes did not read in the outbox, so there is nothing that could be sent.
    Unreadable,
    /// The configuration no longer has the sink.
    NoSink,
    /// There is no such letter.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::line::Lines;

    #[test]
    fn an_id_reads_as_it_is_shown() {
        let id = LetterId {
            sink: "main".into(),
            sequence: 17,
        };
        assert_eq!(id.to_string(), "main:17");
        assert_eq!("main:17".parse(), Ok(id));
        for wrong in ["", "main", ":1", "main:", "main:x", "main:+1", "main/1"] {
            assert_eq!(wrong.parse::<LetterId>(), Err(NoLetterId), "{wrong}");
        }
    }

    #[test]
    fn a_letter_keeps_its_entry_to_the_byte() {
        let entry = OutboxEntry {
            sequence: 4,
            unit: Arc::new(UnitKey {
                connection: "acme".into(),
                stream: "orders".into(),
                partition: Some("eu/1".into()),
            }),
            id: "a \"b\" 😀".into(),
            revision: 3,
            op: Op::Delete,
            updated_at: Some(-1),
            seen_at: 1_700_000_060_000,
            data: RecordData::Text(
                r#"{"n": 1.50, "big":12345678901234567890123,"s":"\u00e4"}"#.into(),
            ),
        };
        for updated_at in [entry.updated_at, None] {
            let entry = OutboxEntry {
                updated_at,
                ..entry.clone()
            };
            let mut line = Vec::new();
            Lines::default().write(&entry, &mut line);
            let letter = DeadLetter {
                sequence: 4,
                line: String::from_utf8(line).unwrap(),
                ..DeadLetter::default()
            };
            assert_eq!(letter.entry(), Some(entry));
        }
    }

    #[test]
    fn what_never_read_has_no_entry() {
        let letter = DeadLetter {
            line: "AAEC".into(),
            ..DeadLetter::default()
        };
        assert_eq!(letter.entry(), None);
    }

    #[test]
    fn a_letter_of_an_older_store_is_dead() {
        let row = r#"{"sink":"a","sequence":2,"key":"k","error":"400","line":"{}","at":7}"#;
        let letter: DeadLetter = serde_json::from_str(row).unwrap();
        assert_eq!((letter.state, letter.tries), (LetterState::Dead, 0));
    }
}
