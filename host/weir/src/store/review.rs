//! What waits for a person's look: why a unit is not polled, answers that nobody has mapped, records that could not be
//! taken.
//!
//! Promises: text from outside is masked and cut before it comes here. Of answers, the newest are kept, at most
//! [`REVIEWS`] in whole. A record that was set aside is never pushed out: it is a hole in the data, and stays until its
//! vendor has mended it or a person has dropped it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

use super::{UnitId, UnitKey};

/// Entries that are kept in whole.
pub const REVIEWS: u64 = 10_000;

/// Why something waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewKind {
    /// The unit is not polled until a person has looked at it.
    Parked,
    /// The connection needs a sign-in.
    SignIn,
    /// An answer that nobody has mapped; it is still tried again by itself.
    Unknown,
    /// Answers of which nothing counts, again and again; still tried.
    Refused,
    /// A part of the walk that the vendor refused for good; the rest was read.
    Skipped,
    /// The unit fails, and records that were not fetched will soon be gone from the vendor.
    Expiring,
    /// A record that could not be taken. The rest of its page was.
    Record,
}

impl ReviewKind {
    /// All of them.
    pub const ALL: [ReviewKind; 7] = [
        ReviewKind::Parked,
        ReviewKind::SignIn,
        ReviewKind::Unknown,
        ReviewKind::Refused,
        ReviewKind::Skipped,
        ReviewKind::Expiring,
        ReviewKind::Record,
    ];

    /// Stands for it in ids and keys.
    pub fn letter(self) -> char {
        match self {
            ReviewKind::Parked => 'p',
            ReviewKind::SignIn => 's',
            ReviewKind::Unknown => 'u',
            ReviewKind::Refused => 'f',
            ReviewKind::Skipped => 'k',
            ReviewKind::Expiring => 'e',
            ReviewKind::Record => 'r',
        }
    }

    /// The kind behind a letter.
    pub fn of_letter(letter: char) -> Option<ReviewKind> {
        ReviewKind::ALL
            .into_iter()
            .find(|kind| kind.letter() == letter)
    }
}

/// Names an entry: `p12` is why unit 12 is parked, `r12-1f2e3d4c` a record of it. Stable for as long as the entry exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReviewId {
    /// The unit.
    pub unit: UnitId,
    /// Why.
    pub kind: ReviewKind,
    /// Tells records of one unit apart; 0 for what a unit has one of.
    pub number: u32,
}

impl fmt::Display for ReviewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.letter(), self.unit.0)?;
        if self.kind == ReviewKind::Record {
            write!(f, "-{:08x}", self.number)?;
        }
        Ok(())
    }
}

/// Not the id of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not the id of something that waits for review: those look like p12 or r12-1f2e3d4c")]
pub struct NoReviewId;

impl FromStr for ReviewId {
    type Err = NoReviewId;

    fn from_str(text: &str) -> Result<Self, NoReviewId> {
        let mut letters = text.chars();
        let kind = letters
            .next()
            .and_then(ReviewKind::of_letter)
            .ok_or(NoReviewId)?;
        let rest = letters.as_str();
        let (unit, number) = match (kind, rest.split_once('-')) {
            (ReviewKind::Record, Some((unit, number))) if number.len() == 8 => (
                unit,
                u32::from_str_radix(number, 16).map_err(|_| NoReviewId)?,
            ),
            (ReviewKind::Record, _) | (_, Some(_)) => return Err(NoReviewId),
            (_, None) => (rest, 0),
        };
        if !unit.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoReviewId);
        }
        Ok(ReviewId {
            unit: UnitId(unit.parse().map_err(|_| NoReviewId)?),
            kind,
            number,
        })
    }
}

/// One thing that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewEntry {
    /// Its name.
    pub id: ReviewId,
    /// The unit's name.
    pub key: UnitKey,
    /// When it was first met.
    pub first: Timestamp,
    /// When it was last met with something new to say.
    pub last: Timestamp,
    /// How often; sights of a record with nothing new to say are not counted.
    pub times: u64,
    /// The fault's class; none for a record.
    pub class: Option<Class>,
    /// The vendor's code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// The answer that caused it, where there was one.
    #[serde(default)]
    pub answer: Option<ShownAnswer>,
    /// The record.
    #[serde(default)]
    pub record: Option<ShownRecord>,
    /// A person has given it up: it waits for nobody, and is kept so that the same is not shown anew.
    #[serde(default)]
    pub dropped: bool,
}

/// A call and its answer, without secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShownAnswer {
    /// `GET https://api.example.test/v1/orders?since=...`
    pub request: String,
    /// None: no answer came.
    pub status: Option<u16>,
    /// The headers that may matter.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body.
    pub body: String,
    /// Bytes of the whole body.
    pub bytes: u64,
}

/// A record that could not be taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShownRecord {
    /// The vendor's id, where one could be read; cut where it is too long.
    pub id: Option<String>,
    /// The vendor's own stamp.
    pub updated_at: Option<Timestamp>,
    /// The beginning of its text.
    pub text: String,
    /// Bytes of the whole text.
    pub bytes: u64,
    /// Tells contents apart.
    pub content: u64,
}

/// An entry that is new or other than before, or none where it is settled.
pub type ReviewChange = (ReviewId, Option<Box<ReviewEntry>>);

/// How many entries there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewCount {
    /// Those that wait for somebody, records aside.
    pub faults: u64,
    /// Records that are set aside and were not given up.
    pub records: u64,
    /// All, given up or not.
    pub all: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_as_it_is_shown() {
        for kind in ReviewKind::ALL {
            let id = ReviewId {
                unit: UnitId(12),
                kind,
                number: if kind == ReviewKind::Record { 0xab } else { 0 },
            };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        let text = "r12-000000ab";
        assert_eq!(text.parse::<ReviewId>().unwrap().to_string(), text);
        for wrong in [
            "",
            "p",
            "x1",
            "p1-2",
            "r1",
            "r1-xyz",
            "p-1",
            "p+1",
            "main:17",
            "oss/issues",
        ] {
            assert_eq!(wrong.parse::<ReviewId>(), Err(NoReviewId), "{wrong}");
        }
    }
}
