//! Records that cannot be taken: which they are, and whether their page is sound all the same.
//!
//! A record cannot be taken when no id can be read of it, when it or its id is larger than a record may be, when it nests
//! deeper than a record may, when it is no JSON, or when it lacks a field that the stream's schema requires of every record.
//!
//! Where the line lies:
//! - A page of which at most half of the records cannot be taken is sound. Those are set aside for a person, with the
//!   beginning of their text, and the rest goes on as ever.
//! - A page of which more than half cannot be taken says nothing that could be trusted: it is refused whole, as
//!   incomplete, and asked for again. When it comes like that for the fourth time in a row and these are few
//!   ([`FEW`]), they are the vendor's lasting word and no accident: they are set aside too.
//! - More than [`PER_PAGE`] on one page are never set aside: then the stream has changed its shape, and its connector or
//!   configuration must follow.
//!
//! A record that is set aside counts as one that has come: it takes part in totals and full pages, moves no watermark, and
//! is a hole until the vendor has mended it or a person has dropped it. A page of which the array is missing, cut or shorter
//! than its own count never comes this far.

use serde_json::Value;
use weir_rules::model::{Class, Fault, Scope, Timestamp};
use weir_runtime::limits::{RECORD, RECORD_ID};

/// The most that are set aside of one page.
const PER_PAGE: usize = 100;
/// As many as these may be the whole of a page that comes the same way again and again.
const FEW: usize = 8;
/// Bytes of a record's text that are kept, before secrets are masked.
const KEPT: usize = 4 << 10;

/// A record that cannot be taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aside {
    /// Its id, where one could be read; the beginning of one that is too long.
    pub(super) id: Option<String>,
    /// Its stamp.
    pub(super) updated_at: Option<Timestamp>,
    /// Why not.
    pub(super) why: String,
    /// The beginning of its text, not masked yet.
    pub(super) text: String,
    /// Bytes of the whole text.
    pub(super) bytes: usize,
    /// Tells contents apart.
    pub(super) content: u64,
}

impl Aside {
    pub(super) fn new(id: &str, updated_at: Option<Timestamp>, why: String, text: &str) -> Aside {
        let content = hash(text.as_bytes());
        let known = (!id.is_empty()).then(|| start(id, 256).to_owned());
        Aside {
            id: known,
            updated_at,
            why,
            text: start(text, KEPT).to_owned(),
            bytes: text.len(),
            content,
        }
    }

    /// Without an id the content is all that tells it from others.
    fn name(&self) -> u64 {
        self.id
            .as_ref()
            .map_or(self.content, |id| hash(id.as_bytes()))
    }

    /// Stands for it where ids are counted: no record's id begins with a zero byte.
    pub(super) fn stand_in(&self) -> String {
        format!("\0{:016x}", self.name())
    }

    /// The number that tells it from the unit's others, as far as 32 bits do.
    pub(super) fn number(&self) -> u32 {
        (self.name() >> 32) as u32
    }
}

/// Why a record of this id and text cannot be taken before anyone has looked into it.
pub(super) fn untakable(id: &str, text: &str, key: &[String]) -> Option<String> {
    if id.is_empty() {
        let at = if key.is_empty() {
            "no id could be read".to_owned()
        } else {
            format!(
                "no id could be read at {}: {}",
                key.join(", "),
                found(text, key)
            )
        };
        return Some(at);
    }
    if id.len() > RECORD_ID {
        return Some(format!(
            "its id has {} bytes; {RECORD_ID} are allowed",
            id.len()
        ));
    }
    (text.len() > RECORD).then(|| format!("it has {} bytes; {RECORD} are allowed", text.len()))
}

/// What stands where the id should be.
fn found(text: &str, key: &[String]) -> &'static str {
    let record = Some(text).filter(|text| text.len() <= RECORD);
    let record = record.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(record) = record else {
        return "the record does not read";
    };
    let values = key.iter().map(|pointer| record.pointer(pointer));
    let wrong = values
        .filter(|value| !matches!(value, Some(Value::Number(_))))
        .find(|value| !matches!(value, Some(Value::String(text)) if !text.is_empty()));
    match wrong.flatten() {
        None => "there is nothing",
        Some(Value::Null) => "it holds null",
        Some(Value::String(_)) => "it holds an empty string",
        Some(Value::Array(_)) => "it holds an array",
        Some(Value::Object(_)) => "it holds an object",
        Some(Value::Bool(_)) => "it holds a boolean",
        Some(Value::Number(_)) => "it holds a number",
    }
}

/// May these be set aside, of a page with so many records? `stubborn`: the page has come like this before, again and again.
pub(super) fn judge(aside: &[Aside], records: usize, stubborn: bool) -> Result<(), Fault> {
    let count = aside.len();
    let sound = count <= PER_PAGE && (count * 2 <= records || (stubborn && count <= FEW));
    match aside.first() {
        Some(first) if !sound => {
            let which = first.id.as_ref().map_or_else(
                || "one".to_owned(),
                |id| format!("record {}", start(id, 80)),
            );
            Err(Fault {
                class: Class::Incomplete,
                scope: Scope::Unit,
                code: "schema".to_owned(),
                message: format!(
                    "{count} of the page's {records} records cannot be taken; of {which}, {}",
                    first.why
                ),
                wait: None,
                page_size: None,
                limits: Vec::new(),
            })
        }
        _ => Ok(()),
    }
}

/// The beginning of a text, cut between characters.
pub(super) fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// FNV-1a: the same in every build, as it is stored.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: usize) -> Vec<Aside> {
        (0..count)
            .map(|n| Aside::new("", None, "no id".into(), &n.to_string()))
            .collect()
    }

    #[test]
    fn half_of_a_page_may_be_set_aside_and_no_more() {
        let sound = |count, records| judge(&some(count), records, false).is_ok();
        assert!(sound(0, 0) && sound(0, 100) && sound(1, 2) && sound(50, 100) && sound(100, 1_000));
        assert!(!sound(1, 1) && !sound(2, 3) && !sound(51, 100) && !sound(101, 1_000));
    }

    #[test]
    fn what_comes_again_and_again_may_be_the_whole_page_if_it_is_little() {
        let sound = |count, records| judge(&some(count), records, true).is_ok();
        assert!(sound(1, 1) && sound(2, 3) && sound(8, 8));
        assert!(!sound(9, 9) && !sound(60, 100));
    }

    #[test]
    fn a_record_is_known_by_its_id_and_else_by_its_content() {
        let aside = |id: &str, text: &str| Aside::new(id, None, String::new(), text);
        assert_eq!(aside("7", "a").number(), aside("7", "b").number());
        assert_ne!(aside("7", "a").content, aside("7", "b").content);
        assert_ne!(aside("", "a").number(), aside("", "b").number());
        assert_eq!(aside("", "a").stand_in(), aside("", "a").stand_in());
    }

    #[test]
    fn what_stands_in_the_ids_place_is_said() {
        let key = ["/id".to_owned()];
        for (text, said) in [
            ("null", "at /id: there is nothing"),
            ("{}", "at /id: there is nothing"),
            (r#"{"id":null}"#, "it holds null"),
            (r#"{"id":""}"#, "it holds an empty string"),
            (r#"{"id":["a"]}"#, "it holds an array"),
            ("{", "does not read"),
        ] {
            let why = untakable("", text, &key).unwrap();
            assert!(why.contains(said), "{text}: {why}");
        }
        assert_eq!(untakable("7", "{}", &key), None);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "ä".repeat(KEPT);
        let aside = Aside::new(&long, None, String::new(), &long);
        assert_eq!((aside.text.len(), aside.bytes), (KEPT, KEPT * 2));
        assert_eq!(aside.id.unwrap().len(), 256);
    }
}
