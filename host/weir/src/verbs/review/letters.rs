//! Deliveries that a sink has refused for good, as far as a person decides about them.

use super::{Entry, Failure, What, settled};
use crate::host::Host;
use crate::store::{DeadLetter, LetterId, LetterState, Requeued, ShownRecord};

/// Bytes of a line that are shown.
const SHOWN: usize = 4 << 10;

impl Entry {
    pub(super) fn of_letter(letter: &DeadLetter) -> Entry {
        let id = letter.id().to_string();
        let way_out = match letter.superseded {
            Some(revision) => format!(
                "the sink has taken revision {revision} of the record: the older one must not follow it, so drop it"
            ),
            None => format!("mend the sink, then `weir review retry {id}`"),
        };
        let cut = letter.line.floor_char_boundary(SHOWN);
        Entry {
            id,
            what: What::DeadLetter,
            unit: format!("sink {}", letter.sink),
            first: letter.at,
            last: letter.at,
            times: u64::from(letter.tries.max(1)),
            class: None,
            code: String::new(),
            message: format!("{}: {}", letter.key, letter.error),
            answer: None,
            record: Some(ShownRecord {
                id: Some(letter.key.clone()),
                updated_at: None,
                text: letter.line.get(..cut).unwrap_or_default().to_owned(),
                bytes: letter.line.len() as u64,
                content: 0,
            }),
            dropped: false,
            way_out,
            lost: format!(
                "this delivery to sink {}; other sinks have theirs",
                letter.sink
            ),
        }
    }
}

/// The letters that wait for a person, at most so many.
pub(super) fn waiting(host: &Host, limit: usize) -> Result<Vec<Entry>, Failure> {
    let letters = host.store.dead_letters(limit)?;
    Ok(letters.iter().map(Entry::of_letter).collect())
}

/// The dead letter of that name.
pub(super) fn find(host: &Host, id: &LetterId) -> Result<DeadLetter, Failure> {
    let letter = host.store.letter(id)?;
    letter
        .filter(|letter| letter.state == LetterState::Dead)
        .ok_or_else(|| {
            Failure::Unknown(format!(
                "{id} does not wait for review: `weir review` lists what does"
            ))
        })
}

/// It goes out again; an error says why it cannot.
pub(super) async fn retry(host: &Host, id: &LetterId) -> Result<String, Failure> {
    find(host, id)?;
    let refuse = |why: String| Err(Failure::Refused(format!("{id} cannot go out again: {why}")));
    match settled(host.store.requeue(id.clone())).await? {
        Requeued::GoesOut | Requeued::IsTried => {
            Ok("it goes out again under its key, before later revisions of its record".to_owned())
        }
        Requeued::Superseded(revision) => refuse(format!(
            "the sink has taken revision {revision} of the record, and an older one must not follow; drop it"
        )),
        Requeued::Unreadable => refuse(
            "its bytes did not read in the outbox; `weir review show` has them in base64"
                .to_owned(),
        ),
        Requeued::NoSink => refuse(format!("the configuration has no sink {}", id.sink)),
        Requeued::Unknown => refuse("it is no more".to_owned()),
    }
}

/// It is given up.
pub(super) async fn drop(host: &Host, id: &LetterId) -> Result<Entry, Failure> {
    let letter = find(host, id)?;
    settled(host.store.drop_letter(id.clone())).await?;
    Ok(Entry::of_letter(&letter))
}
