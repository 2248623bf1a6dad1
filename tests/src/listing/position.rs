//! Where a walk stands, and the opaque token that says so.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::dice::mix;
use crate::world::Place;

/// Where a page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Behind this place of the listing.
    pub(crate) place: Option<Place>,
    /// Behind so many records.
    pub(crate) given: u64,
    /// How many pages came before, empty ones included: two tokens of one walk are never equal.
    pub(crate) turn: u64,
    /// When the token was given.
    pub(crate) issued: i64,
    /// The filter of the walk's first call, which a token carries along.
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
}

impl Position {
    /// The token: base64url with a check, so that a client that changes a character is told so. It begins with
    /// characters that a careless client would decode or cut.
    pub(crate) fn token(&self) -> String {
        let number =
            |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let text = format!(
            "{}|{}|{}|{}|{}|{}|{}",
            number(self.place.map(|place| place.0)),
            self.place
                .map_or_else(|| "-".to_owned(), |place| place.1.to_string()),
            self.given,
            self.turn,
            self.issued,
            number(self.since),
            number(self.until),
        );
        let check = check(&text);
        format!("{}=={check:08x}", URL_SAFE_NO_PAD.encode(text))
    }

    /// Reads a token that this vendor gave.
    pub(crate) fn read(token: &str) -> Option<Self> {
        let (encoded, given_check) = token.split_once("==")?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
        if format!("{:08x}", check(&text)) != given_check {
            return None;
        }
        let mut parts = text.split('|');
        let mut number = || -> Option<Option<i64>> {
            let part = parts.next()?;
            if part == "-" {
                return Some(None);
            }
            part.parse().ok().map(Some)
        };
        let value = number()?;
        let record = number()?.and_then(|record| u64::try_from(record).ok());
        Some(Position {
            place: value.zip(record),
            given: u64::try_from(number()??).ok()?,
            turn: u64::try_from(number()??).ok()?,
            issued: number()??,
            since: number()?,
            until: number()?,
        })
    }
}

fn check(text: &str) -> u32 {
    let sum = text
        .bytes()
        .fold(0x5eed, |state, byte| mix(state ^ u64::from(byte)));
    (sum >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_token_reads_back(
            place in proptest::option::of((any::<i64>(), 0u64..1 << 62)),
            given in 0u64..1 << 62, turn in 0u64..1 << 62, issued in any::<i64>(),
            since in proptest::option::of(any::<i64>()), until in proptest::option::of(any::<i64>()),
        ) {
            let position = Position { place, given, turn, issued, since, until };
            prop_assert_eq!(Position::read(&position.token()), Some(position));
        }

        #[test]
        fn nonsense_is_no_token(text in ".*") {
            prop_assert_eq!(Position::read(&text), None);
        }
    }
}
