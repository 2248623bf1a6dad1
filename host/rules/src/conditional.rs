//! Conditional requests: when to let the vendor answer 304, and when to believe it.
//!
//! Promises: an entity tag goes back byte for byte; a date is trusted only when nothing can have changed within its
//! second unseen; an answer of 304 is believed only if it was asked for. What is not sure is asked for
//! plainly: that costs quota, never records.
//!
//! A validator belongs to one exact request (URL, varying headers, credential) and vouches for one page. The
//! page's next steps and cursor are kept with it, so that the walk goes on to the following pages, each with a
//! validator of its own.

use std::time::{Duration, SystemTime};

/// The headers of an answer that matter here, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps<'a> {
    /// `ETag`
    pub etag: Option<&'a str>,
    /// `Last-Modified`
    pub last_modified: Option<&'a str>,
    /// `Date`
    pub date: Option<&'a str>,
}

/// What a page was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// It held as many records as a page can.
    pub full: bool,
    /// It named a next step.
    pub next: bool,
    /// The vendor held something back, or what came was not taken whole.
    pub truncated: bool,
}

/// What lets the vendor answer 304 to the same request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// The entity tag, weak mark, quotes, suffix and all.
    pub etag: Option<String>,
    /// The date of the last change, as text.
    pub last_modified: Option<String>,
}

/// What to remember of a page, for the next time the same request is made. None: ask plainly then, and forget
/// what was remembered.
///
/// Nothing for a full page without a next step: were a record added on the page after it, this one would not change,
/// and a 304 would hide the new page for good. Nothing for a truncated one: it vouches for less than was there.
pub fn remember(stamps: &Stamps<'_>, shape: Shape) -> Option<Tags> {
    if (shape.full && !shape.next) || shape.truncated {
        return None;
    }
    let tags = Tags {
        etag: stamps
            .etag
            .filter(|etag| may_send_back(etag))
            .map(str::to_owned),
        last_modified: stamps
            .last_modified
            .filter(|modified| settled(modified, stamps.date))
            .map(str::to_owned),
    };
    (tags.etag.is_some() || tags.last_modified.is_some()).then_some(tags)
}

impl Tags {
    /// The headers that ask for a 304. With both, the vendor goes by the tag (RFC 9110 section 13.1.3).
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let tag = self.etag.iter().map(|etag| ("if-none-match", etag.clone()));
        let date = self
            .last_modified
            .iter()
            .map(|modified| ("if-modified-since", modified.clone()));
        tag.chain(date).collect()
    }
}

/// What an answer of 304 is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotModified {
    /// The page is as it was: a success without records. Whatever body came with it is not read.
    Believed,
    /// It speaks of something else than what was asked: forget the validator and ask plainly.
    AskPlainly,
}

/// Judges a 304. `sent` is what the request carried, `etag` what the answer did.
pub fn judge(sent: Option<&Tags>, etag: Option<&str>) -> NotModified {
    let fits = sent.is_some_and(|sent| match (&sent.etag, etag) {
        (Some(sent), Some(got)) => weakly_equal(sent, got),
        _ => true,
    });
    if fits {
        NotModified::Believed
    } else {
        NotModified::AskPlainly
    }
}

/// Weak comparison (RFC 9110 section 8.8.3.2): the opaque parts are equal, weak marks aside. A mark of the content
/// coding that a front appends (`"abc-gzip"`) is set aside too: its 304 often comes without.
pub fn weakly_equal(a: &str, b: &str) -> bool {
    opaque(a) == opaque(b)
}

fn opaque(etag: &str) -> &str {
    let etag = etag.strip_prefix("W/").unwrap_or(etag);
    let etag = etag.strip_prefix('"').unwrap_or(etag);
    let etag = etag.strip_suffix('"').unwrap_or(etag);
    ["gzip", "br", "zstd", "deflate"]
        .iter()
        .find_map(|coding| {
            let rest = etag.strip_suffix(coding)?;
            ["--", "-", ";"]
                .iter()
                .find_map(|joint| rest.strip_suffix(joint))
        })
        .unwrap_or(etag)
}

/// Whether a tag may stand in a header. `*` would ask for a 304 whatever there is.
fn may_send_back(etag: &str) -> bool {
    !etag.is_empty() && etag != "*" && etag.bytes().all(|byte| byte >= b' ' && byte != 0x7f)
}

/// A date of change has a resolution of one second: within the second of the answer itself, more may have changed
/// after it was written (RFC 9110 section 8.8.2.2).
fn settled(modified: &str, date: Option<&str>) -> bool {
    let read = |text: &str| httpdate::parse_http_date(text.trim()).ok();
    let (Some(modified), Some(date)) = (read(modified), date.and_then(read)) else {
        return false;
    };
    modified > SystemTime::UNIX_EPOCH
        && date
            .duration_since(modified)
            .is_ok_and(|age| age >= Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PART: Shape = Shape {
        full: false,
        next: false,
        truncated: false,
    };

    fn tagged(etag: &str) -> Option<Tags> {
        let stamps = Stamps {
            etag: Some(etag),
            ..Stamps::default()
        };
        remember(&stamps, PART)
    }

    fn dated(modified: &str, date: Option<&str>) -> Option<Tags> {
        let stamps = Stamps {
            last_modified: Some(modified),
            date,
            ..Stamps::default()
        };
        remember(&stamps, PART)
    }

    /// The choice: a full page without a next step gets no validator, so the next poll reads it again.
    #[test]
    fn case_097_a_full_page_without_a_next_one_gets_no_validator() {
        let stamps = Stamps {
            etag: Some("\"e1\""),
            ..Stamps::default()
        };
        let full = Shape { full: true, ..PART };
        assert_eq!(remember(&stamps, full), None);
        let led_on = Shape { next: true, ..full };
        assert!(remember(&stamps, led_on).is_some());
        let cut = Shape {
            truncated: true,
            ..PART
        };
        assert_eq!(remember(&stamps, cut), None);
    }

    #[test]
    fn case_099_a_304_that_was_asked_for_is_believed_with_and_without_a_tag() {
        let sent = tagged("\"e1\"");
        assert_eq!(judge(sent.as_ref(), None), NotModified::Believed);
        assert_eq!(judge(sent.as_ref(), Some("\"e1\"")), NotModified::Believed);
        assert_eq!(
            judge(sent.as_ref(), Some("W/\"e1\"")),
            NotModified::Believed
        );
    }

    #[test]
    fn a_304_that_nobody_asked_for_or_of_another_tag_is_not_believed() {
        assert_eq!(judge(None, Some("\"e1\"")), NotModified::AskPlainly);
        assert_eq!(
            judge(tagged("\"e1\"").as_ref(), Some("\"e2\"")),
            NotModified::AskPlainly
        );
    }

    /// Each page has its own tag; that the first is unchanged says nothing of the third.
    #[test]
    fn case_101_a_tag_speaks_for_its_own_page_only() {
        let middle = Shape {
            full: true,
            next: true,
            truncated: false,
        };
        let pages = ["\"p1\"", "\"p2\""].map(|etag| {
            let stamps = Stamps {
                etag: Some(etag),
                ..Stamps::default()
            };
            remember(&stamps, middle).unwrap()
        });
        assert_eq!(pages[0].headers(), [("if-none-match", "\"p1\"".to_owned())]);
        assert_eq!(
            judge(Some(&pages[1]), Some("\"p1\"")),
            NotModified::AskPlainly
        );
    }

    #[test]
    fn case_103_a_tag_goes_back_byte_for_byte() {
        for etag in [
            "\"abc-gzip\"",
            "W/\"123--gzip\"",
            "\"a,b\"",
            "unquoted",
            "\"\u{e9}\"",
            "\"\"",
        ] {
            let headers = tagged(etag).unwrap().headers();
            assert_eq!(headers, [("if-none-match", etag.to_owned())]);
        }
    }

    #[test]
    fn a_coding_mark_that_the_304_leaves_out_does_not_matter() {
        assert!(weakly_equal("\"abc-gzip\"", "\"abc\""));
        assert!(weakly_equal("W/\"123--gzip\"", "W/\"123\""));
        assert!(weakly_equal("\"abc;br\"", "\"abc\""));
        assert!(!weakly_equal("\"abc-gzip\"", "\"abd-gzip\""));
        assert!(!weakly_equal("\"gzip\"", "\"\""));
    }

    #[test]
    fn a_star_and_line_breaks_are_never_sent() {
        for etag in ["", "*", "\"a\r\nx: y\"", "\"a\0\""] {
            assert_eq!(tagged(etag), None, "{etag:?}");
        }
    }

    #[test]
    fn a_date_is_trusted_when_it_is_a_second_older_than_the_answer() {
        let date = Some("Tue, 04 Mar 2031 10:00:00 GMT");
        let kept = dated("Tue, 04 Mar 2031 09:59:59 GMT", date).unwrap();
        assert_eq!(
            kept.headers(),
            [(
                "if-modified-since",
                "Tue, 04 Mar 2031 09:59:59 GMT".to_owned()
            )]
        );
        for (modified, date) in [
            ("Tue, 04 Mar 2031 10:00:00 GMT", date),
            ("Tue, 04 Mar 2031 10:00:01 GMT", date),
            ("Tue, 04 Mar 2031 09:00:00 GMT", None),
            ("Tue, 04 Mar 2031 09:00:00 GMT", Some("yesterday")),
            ("2031-03-04T09:00:00Z", date),
            ("Thu, 01 Jan 1970 00:00:00 GMT", date),
        ] {
            assert_eq!(dated(modified, date), None, "{modified} {date:?}");
        }
    }

    proptest! {
        #[test]
        fn a_tag_equals_itself_weak_or_not(text in "[!-~&&[^\"]]{0,20}") {
            let strong = format!("\"{text}\"");
            let weak = format!("W/{strong}");
            prop_assert!(weakly_equal(&strong, &weak));
        }
    }
}
