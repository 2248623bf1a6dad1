//! Letters in memory: what sinks have refused, and what a person decides about it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::store::{DeadLetter, Handled, LetterId, LetterState, Requeued, Sequence};

/// All letters, by sink and place in the outbox.
#[derive(Default)]
pub(super) struct Letters {
    by_id: BTreeMap<(String, Sequence), DeadLetter>,
}

impl Letters {
    /// Does the report say anything of letters?
    pub(super) fn concern(done: &Handled) -> bool {
        !(done.letters.is_empty() && done.taken.is_empty() && done.superseded.is_empty())
    }

    /// The part of a sink's report that is about letters.
    pub(super) fn handled(&mut self, sink: &str, done: &Handled) {
        for letter in &done.letters {
            let id = (sink.to_owned(), letter.sequence);
            self.by_id.insert(id, letter.clone());
        }
        for sequence in &done.taken {
            self.by_id.remove(&(sink.to_owned(), *sequence));
        }
        for (sequence, revision) in &done.superseded {
            if let Some(letter) = self.by_id.get_mut(&(sink.to_owned(), *sequence)) {
                letter.superseded = letter.superseded.max(Some(*revision));
                letter.state = LetterState::Dead;
            }
        }
    }

    pub(super) fn get(&self, id: &LetterId) -> Option<DeadLetter> {
        self.by_id.get(&key(id)).cloned()
    }

    pub(super) fn for_each(
        &self,
        sink: Option<&str>,
        each: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) {
        for ((of, _), letter) in &self.by_id {
            if sink.is_none_or(|sink| sink == of) && each(letter.clone()).is_break() {
                return;
            }
        }
    }

    pub(super) fn requeue(&mut self, id: &LetterId, has_sink: bool) -> Requeued {
        match self.by_id.get_mut(&key(id)) {
            Some(letter) => match letter.requeue(has_sink) {
                Ok(()) => Requeued::GoesOut,
                Err(why) => why,
            },
            None => Requeued::Unknown,
        }
    }

    /// Is there a dead letter of that name?
    pub(super) fn is_dead(&self, id: &LetterId) -> bool {
        let letter = self.by_id.get(&key(id));
        letter.is_some_and(|letter| letter.state == LetterState::Dead)
    }

    pub(super) fn drop_dead(&mut self, id: &LetterId) -> Option<DeadLetter> {
        if !self.is_dead(id) {
            return None;
        }
        self.by_id.remove(&key(id))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut DeadLetter> {
        self.by_id.values_mut()
    }
}

fn key(id: &LetterId) -> (String, Sequence) {
    (id.sink.clone(), id.sequence)
}
