//! A place inside a walk, as the host stores it between two calls.

use serde::{Deserialize, Serialize, Serializer};

use crate::config::Scalar;

/// Where the next page begins. Values from the vendor are kept as the vendor wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// After the last record of the page before.
    After {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Scalar>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<Scalar>,
    },
    /// The page again, larger: all of it had one time, and the rest of that time's records come with no id to ask for.
    Ties {
        /// The time that the page was asked after; none for the walk's first page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Scalar>,
        /// Records that are asked for now.
        size: u32,
        /// Where the walk goes on behind that time.
        past: Scalar,
    },
    /// Behind a time whose records came on a larger page that was not full: all of them, if nothing follows. A vendor
    /// that has more to show would have filled the page, unless it never gives as much.
    Past(Scalar),
    /// The vendor's token.
    Token(Scalar),
    /// A page's number, and how many records lie before it.
    Page { number: u64, seen: u64 },
    /// How many records lie before the page.
    Offset(u64),
    /// A URL of the vendor's.
    Url(String),
}

impl Serialize for Scalar {
    /// Numbers stay numbers where that loses no digit; a JSON body may need them so.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text.parse::<i64>() {
            Ok(number) if !self.quoted && number.to_string() == self.text => {
                serializer.serialize_i64(number)
            }
            _ => serializer.serialize_str(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_survive_their_json_form_byte_for_byte() {
        let scalar = |text: &str, quoted| Scalar {
            text: text.to_owned(),
            quoted,
        };
        for (step, json) in [
            (
                Step::After {
                    id: Some(scalar("9224851642388483", false)),
                    time: Some(scalar("1930384800.000250", true)),
                },
                r#"{"after":{"id":9224851642388483,"time":"1930384800.000250"}}"#,
            ),
            (Step::Token(scalar("007", true)), r#"{"token":"007"}"#),
            (
                Step::Ties {
                    after: None,
                    size: 400,
                    past: scalar("1930384800", false),
                },
                r#"{"ties":{"size":400,"past":1930384800}}"#,
            ),
            (Step::Past(scalar("2031", true)), r#"{"past":"2031"}"#),
            (
                Step::Page {
                    number: 3,
                    seen: 50,
                },
                r#"{"page":{"number":3,"seen":50}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&step).unwrap(), json);
            assert_eq!(serde_json::from_str::<Step>(json).unwrap(), step);
        }
        // Beyond 64 bits the digits are kept as text.
        let wide = Step::Token(scalar("123456789012345678901234567890", false));
        assert_eq!(
            serde_json::to_string(&wide).unwrap(),
            r#"{"token":"123456789012345678901234567890"}"#
        );
    }
}
