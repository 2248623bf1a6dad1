//! The ways in which vendors split a listing into pages. Each is a step: where the walk is, how to ask for it, and what
//! comes after an answer.
//!
//! A page shorter than asked for is not the end where the vendor says otherwise, nor is a full one proof that there is more:
//! prefer the vendor's own sign ([`Token`], [`NextUrl`], a total) to counting.

use serde::{Deserialize, Serialize};

use crate::json::Raw;
use crate::{Request, Response, link, url};

/// Goes on after the last record seen: by its stamp and its id, both exactly as the vendor wrote them, so that ties are
/// split by the id and no digit of a fine stamp is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyset {
    /// The last record's stamp, as written; none where the id alone orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
    /// The last record's id.
    pub id: String,
}

impl Keyset {
    /// After a record with this id and, where there is one, this stamp.
    pub fn after(stamp: Option<Raw<'_>>, id: Raw<'_>) -> Option<Self> {
        let stamp = match stamp {
            Some(stamp) => Some(stamp.id()?),
            None => None,
        };
        Some(Keyset {
            stamp,
            id: id.id()?,
        })
    }

    /// Adds the id, and the stamp in place of whatever the first call sent as the window's start.
    pub fn apply(&self, request: Request, stamp_param: Option<&str>, id_param: &str) -> Request {
        let request = match (stamp_param, &self.stamp) {
            (Some(name), Some(stamp)) => with_param(request, name, stamp),
            _ => request,
        };
        with_param(request, id_param, &self.id)
    }
}

/// Goes on with a token that the vendor gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The token, byte for byte.
    pub token: String,
}

impl Token {
    /// The next token of an answer. The end is spelled as nothing, `null`, `""` or `false`, by vendor.
    pub fn next(found: Option<Raw<'_>>) -> Option<Self> {
        let found = found.filter(|value| !value.is_null() && value.bool().is_none())?;
        found.id().map(|token| Token { token })
    }

    /// Adds the token.
    pub fn apply(&self, request: Request, param: &str) -> Request {
        with_param(request, param, &self.token)
    }
}

/// Goes on with the next number. Remembers the page size that it counts in: at another size it would skip records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNumber {
    /// The page to ask for.
    pub page: u64,
    /// The size that it counts in.
    pub size: u32,
}

impl PageNumber {
    /// The first page; vendors begin at 1 or at 0.
    pub fn first(page: u64, size: u32) -> Self {
        PageNumber { page, size }
    }

    /// The page after this one.
    pub fn following(&self) -> Self {
        PageNumber {
            page: self.page.saturating_add(1),
            size: self.size,
        }
    }

    /// Adds the number and the size.
    pub fn apply(&self, request: Request, page_param: &str, size_param: Option<&str>) -> Request {
        let request = with_param(request, page_param, &self.page.to_string());
        match size_param {
            Some(name) => with_param(request, name, &self.size.to_string()),
            None => request,
        }
    }
}

/// Goes on after so many records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// So many records lie before the page.
    pub offset: u64,
    /// The size that is asked for.
    pub size: u32,
}

impl Offset {
    /// From the start.
    pub fn first(size: u32) -> Self {
        Offset { offset: 0, size }
    }

    /// After a page that held so many records: what arrived counts, not what was asked for.
    pub fn following(&self, arrived: usize) -> Self {
        Offset {
            offset: self.offset.saturating_add(arrived as u64),
            size: self.size,
        }
    }

    /// Adds the offset and the size.
    pub fn apply(&self, request: Request, offset_param: &str, size_param: Option<&str>) -> Request {
        let request = with_param(request, offset_param, &self.offset.to_string());
        match size_param {
            Some(name) => with_param(request, name, &self.size.to_string()),
            None => request,
        }
    }
}

/// Goes on at a URL that the vendor gave, in a `Link` header or in the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextUrl {
    /// The whole URL.
    pub url: String,
}

impl NextUrl {
    /// The answer's `Link: <...>; rel="next"` (RFC 8288).
    pub fn from_link(response: &Response) -> Option<Self> {
        link::next(response).map(|url| NextUrl { url })
    }

    /// A URL in the body, which may be relative to the one that was asked; nothing, `null` and `""` are the end.
    pub fn from_body(found: Option<Raw<'_>>, response: &Response) -> Option<Self> {
        let text = found?.string()?;
        let text = text.trim();
        if text.is_empty() {
            None
        } else {
            url::resolve(&response.url, text).map(|url| NextUrl { url })
        }
    }

    /// The call for it. The host refuses a URL that does not lie at this origin.
    pub fn request(&self, origin: &str) -> Request {
        Request::follow(origin, self.url.clone())
    }
}

/// Sets a parameter, in place of one of that name.
pub fn with_param(mut request: Request, name: &str, value: &str) -> Request {
    request.query.retain(|(key, _)| key != name);
    request.query.push((name.to_owned(), value.to_owned()));
    request
}
