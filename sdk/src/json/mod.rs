//! JSON without changing it: places in the vendor's text, not copies of it.
//!
//! A page of records is read in one pass by a [`Plan`], which names what is wanted by JSON pointers (RFC 6901). What comes
//! back are slices of the answer ([`Raw`]): numbers keep their digits, strings their escapes, and a record is exactly what
//! the vendor sent.
//!
//! The reader checks what it walks through (brackets, commas, colons, that the text ends where the value ends) and skips
//! the rest; the host checks every record in full when it hashes it. A byte order mark before the text is ignored. When an
//! object has the same key twice the last one counts, here as in the host.

mod block;
mod error;
mod listing;
mod node;
mod plan;
mod raw;
mod scan;

pub use error::Error;
pub use listing::{Listing, Row};
pub use plan::Plan;
pub use raw::Raw;

use std::borrow::Cow;

use serde::Deserialize;

/// The value at a JSON pointer; none when there is nothing.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let found = json::at(r#"{"meta":{"next":"p2"}}"#, "/meta/next")?;
/// assert_eq!(found.and_then(Raw::id).as_deref(), Some("p2"));
/// # Ok::<(), json::Error>(())
/// ```
pub fn at<'a>(text: &'a str, pointer: &str) -> Result<Option<Raw<'a>>, Error> {
    let [found] = fields(text, [pointer])?;
    Ok(found)
}

/// The string at a JSON pointer; none where there is no string, and where the text is no JSON. For refusals, which may be
/// anything: a page is read by a [`Plan`], which says what is wrong with it.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let refusal = r#"{"error":{"code":"too_fast","wait":12}}"#;
/// assert_eq!(json::text_at(refusal, "/error/code").as_deref(), Some("too_fast"));
/// assert_eq!(json::text_at(refusal, "/error/wait"), None);
/// assert_eq!(json::text_at("<html>Bad Gateway</html>", "/error/code"), None);
/// ```
pub fn text_at(text: &str, pointer: &str) -> Option<String> {
    let found = at(text, pointer).ok().flatten()?;
    found.string().map(Cow::into_owned)
}

/// The values at several pointers, in one pass.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let [id, at] = json::fields(r#"{"id":7,"other":1}"#, ["/id", "/at"])?;
/// assert!(id.is_some() && at.is_none());
/// # Ok::<(), json::Error>(())
/// ```
pub fn fields<'a, const N: usize>(
    text: &'a str,
    pointers: [&str; N],
) -> Result<[Option<Raw<'a>>; N], Error> {
    let plan = pointers
        .iter()
        .fold(Plan::single(), |plan, pointer| plan.outside(pointer));
    let listing = plan.read(text)?;
    Ok(std::array::from_fn(|slot| listing.outside(slot)))
}

/// The elements of the array at a pointer.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let items = json::elements(r#"{"items":[1.10,{"id":2}]}"#, "/items")?;
/// assert_eq!(items[0].json(), "1.10");
/// # Ok::<(), json::Error>(())
/// ```
pub fn elements<'a>(text: &'a str, pointer: &str) -> Result<Vec<Raw<'a>>, Error> {
    Ok(Plan::new(pointer).read(text)?.into_records())
}

/// A whole text, parsed by serde; a byte order mark before it is ignored.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let ids: Vec<u64> = json::parse("[7,9]")?;
/// assert_eq!(ids, [7, 9]);
/// assert!(json::parse::<Vec<u64>>("<html>").is_err());
/// # Ok::<(), json::Error>(())
/// ```
pub fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(bare).map_err(|error| {
        if scan::looks_like_html(bare) {
            Error::html(bare)
        } else {
            Error::Parse {
                what: error.to_string(),
            }
        }
    })
}
