//! What the sink refuses: tried again by itself, then a dead letter; and what a person has requeued.

use std::ops::ControlFlow;
use std::time::Duration;

use super::held::{Held, HeldEntries};
use super::index::LetterIndex;
use super::{Change, Delivery, HELD, Stumble};
use crate::sink::{Refusal, Remedy, SinkError};
use crate::store::{DeadLetter, LetterState, OutboxEntry, Sequence};

/// So many different entries refused in a row as if the sink's address or credential were wrong: it is the sink.
const DOORS: usize = 3;

impl Delivery {
    /// The sink has refused an entry for the `tries`-th time. `since`: how many entries it had taken when it did so
    /// first. An error says that this is not about the entry.
    pub(super) fn refused(
        &mut self,
        entry: OutboxEntry,
        tries: u32,
        refusal: &Refusal,
        key: Option<String>,
        since: u64,
    ) -> Result<(), SinkError> {
        let sink = self.sink.name();
        let name = self.lines.key(&entry);
        self.status.send_modify(|status| status.refusals += 1);
        if !refusal.door {
            self.doors.clear();
        } else if !self.doors.contains(&entry.sequence) {
            self.doors.push(entry.sequence);
        }
        let spent = tries >= self.settings.refused_tries;
        // Nobody can tell whether it is about the entry or about the sink as long as the sink takes nothing else.
        let shut = refusal.door && self.status.borrow().delivered == since;
        let full = self.letters.dead() >= self.settings.dead_letters;
        let person = (self.doors.len() >= DOORS || (spent && shut)).then(|| {
            SinkError::new(sink, format!("{}: it refuses everything", refusal.word))
                .with(Remedy::Person)
        });
        if spent && !shut && !full {
            tracing::error!(
                sink,
                key = name,
                tries,
                word = refusal.word,
                "the sink refuses an entry for good; it is a dead letter"
            );
            let letter = self.letter(&entry, LetterState::Dead, tries, &refusal.word, key);
            self.put_letter(letter);
            self.letters.set(&entry, LetterState::Dead);
            self.status.send_modify(|status| status.dead += 1);
            self.show_full();
        } else {
            if spent && full && !self.status.borrow().letters_full {
                tracing::error!(
                    sink,
                    bound = self.settings.dead_letters,
                    "the sink has as many dead letters as it may have: what it refuses is tried again and again until some are retried or dropped with `weir review`"
                );
            }
            tracing::warn!(
                sink,
                key = name,
                tries,
                word = refusal.word,
                "the sink refuses an entry; it is tried again"
            );
            self.hold(entry, tries, &refusal.word, key, since);
            self.show_full();
        }
        match person {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// An entry whose record has an earlier one held waits behind it.
    pub(super) fn hold_behind(&mut self, entry: OutboxEntry) {
        let since = self.status.borrow().delivered;
        self.hold(entry, 0, "", None, since);
    }

    fn hold(
        &mut self,
        entry: OutboxEntry,
        tries: u32,
        word: &str,
        key: Option<String>,
        since: u64,
    ) {
        let wait = match tries {
            0 => 0,
            tries => self.settings.refused.ceiling(tries),
        };
        let mut letter = self.letter(&entry, LetterState::Held, tries, word, key.clone());
        letter.next = letter.at.saturating_add_unsigned(wait);
        self.put_letter(letter);
        self.letters.set(&entry, LetterState::Held);
        let next = self.clock.monotonic() + Duration::from_millis(wait);
        self.held.hold(Held {
            entry,
            tries,
            next,
            key,
            since,
        });
        self.show_held();
    }

    fn letter(
        &mut self,
        entry: &OutboxEntry,
        state: LetterState,
        tries: u32,
        word: &str,
        key: Option<String>,
    ) -> DeadLetter {
        let mut line = Vec::new();
        self.lines.write(entry, &mut line);
        DeadLetter {
            sink: self.sink.name().to_owned(),
            sequence: entry.sequence,
            key: self.lines.key(entry),
            error: word.to_owned(),
            line: String::from_utf8_lossy(&line).trim_end().to_owned(),
            at: self.clock.wall(),
            state,
            tries,
            next: 0,
            intent: key,
            superseded: None,
        }
    }

    /// Offers one held entry by itself.
    pub(super) async fn try_again(&mut self, sequence: Sequence) -> Result<(), Stumble> {
        if self.sink.form().is_some() {
            self.key_for_held(sequence).await?;
        }
        let Some(held) = self.held.get(sequence) else {
            return Ok(());
        };
        let key = held.key.clone();
        let delivered = self
            .sink
            .deliver(std::slice::from_ref(&held.entry), key.as_deref())
            .await?;
        self.recovered();
        let Some(held) = self.held.take(sequence) else {
            return Ok(());
        };
        let refused = match delivered.refused.into_iter().next() {
            Some((_, refusal)) => {
                let tries = held.tries.saturating_add(1);
                let since = if held.tries == 0 {
                    self.status.borrow().delivered
                } else {
                    held.since
                };
                self.refused(held.entry, tries, &refusal, key, since)
            }
            None => {
                self.letters.forget(&held.entry);
                self.changes.insert(sequence, Change::Taken);
                self.taken(&held.entry);
                Ok(())
            }
        };
        self.show_held();
        refused.map_err(Stumble::Sink)
    }

    /// A held entry's key is stored before its first try, with it.
    async fn key_for_held(&mut self, sequence: Sequence) -> Result<(), Stumble> {
        let new = self.new_key();
        if let Some(held) = self.held.get(sequence)
            && held.key.is_none()
        {
            held.key = Some(new.clone());
            let (entry, tries) = (held.entry.clone(), held.tries);
            let letter = self.letter(&entry, LetterState::Held, tries, "", Some(new));
            self.put_letter(letter);
        }
        self.finish().await
    }

    /// Reads the sink's letters: at the start, when a person has decided about some, and when there is room for more
    /// held ones. The oldest held ones come into memory, so that those of one record keep their order.
    pub(super) async fn reload_letters(&mut self) -> Result<(), Stumble> {
        // What is stored must be what is known here.
        self.finish().await?;
        let mut before = std::mem::take(&mut self.held);
        let (mono, wall) = (self.clock.monotonic(), self.clock.wall());
        let cap = self.settings.refused.cap();
        let (mut held, mut letters, mut more) =
            (HeldEntries::default(), LetterIndex::default(), false);
        let read = self
            .store
            .for_each_letter(Some(self.sink.name()), &mut |letter| {
                match letter.entry() {
                    None => letters.unreadable(),
                    Some(entry) => {
                        letters.set(&entry, letter.state);
                        match letter.state {
                            LetterState::Dead => {}
                            LetterState::Held if held.len() >= HELD => more = true,
                            LetterState::Held => {
                                held.hold(before.take(entry.sequence).unwrap_or_else(|| {
                                    // A clock that was set back must not hold it for years.
                                    let wait =
                                        letter.next.saturating_sub(wall).max(0).unsigned_abs();
                                    Held {
                                        entry,
                                        tries: letter.tries,
                                        next: mono + Duration::from_millis(wait.min(cap)),
                                        key: letter.intent,
                                        since: 0,
                                    }
                                }))
                            }
                        }
                    }
                }
                ControlFlow::Continue(())
            });
        if let Err(error) = read {
            self.held = before;
            return Err(error.into());
        }
        (self.held, self.letters, self.more_held) = (held, letters, more);
        self.show_held();
        self.show_full();
        Ok(())
    }

    fn show_held(&self) {
        let held = self.held.len() as u64;
        self.status.send_modify(|status| status.held = held);
    }

    fn show_full(&self) {
        let full = self.letters.dead() >= self.settings.dead_letters;
        self.status.send_modify(|status| status.letters_full = full);
    }
}
