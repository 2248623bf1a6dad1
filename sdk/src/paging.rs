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
///
/// ```
/// # use weir_sdk::prelude::*;
/// let step = paging::Keyset { stamp: None, id: "1042".to_owned() };
/// let request = step.apply(Request::get("api", "/orders"), None, "after_id");
/// assert_eq!(request.param("after_id"), Some("1042"));
/// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"at":"2031-03-04T10:00:00.123456Z","id":1042}"#;
    /// let [at, id] = json::fields(text, ["/at", "/id"])?;
    /// let step = paging::Keyset::after(at, id.unwrap()).unwrap();
    /// assert_eq!(step.stamp.as_deref(), Some("2031-03-04T10:00:00.123456Z"));
    /// # Ok::<(), json::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let first = Request::get("api", "/orders").query("since", "09:00");
    /// let step = paging::Keyset { stamp: Some("09:30".to_owned()), id: "7".to_owned() };
    /// let next = step.apply(first, Some("since"), "after_id");
    /// assert_eq!((next.param("since"), next.param("after_id")), (Some("09:30"), Some("7")));
    /// ```
    pub fn apply(&self, request: Request, stamp_param: Option<&str>, id_param: &str) -> Request {
        let request = match (stamp_param, &self.stamp) {
            (Some(name), Some(stamp)) => with_param(request, name, stamp),
            _ => request,
        };
        with_param(request, id_param, &self.id)
    }
}

/// Goes on with a token that the vendor gave.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let step = paging::Token { token: "p2".to_owned() };
/// assert_eq!(step.apply(Request::get("api", "/notes"), "page").param("page"), Some("p2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The token, byte for byte.
    pub token: String,
}

impl Token {
    /// The next token of an answer. The end is spelled as nothing, `null`, `""` or `false`, by vendor.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let found = json::at(r#"{"next":"p2"}"#, "/next")?;
    /// assert_eq!(paging::Token::next(found).unwrap().token, "p2");
    /// let end = json::at(r#"{"next":null}"#, "/next")?;
    /// assert!(paging::Token::next(end).is_none());
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn next(found: Option<Raw<'_>>) -> Option<Self> {
        let found = found.filter(|value| !value.is_null() && value.bool().is_none())?;
        found.id().map(|token| Token { token })
    }

    /// Adds the token.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let step = paging::Token { token: "p2".to_owned() };
    /// assert_eq!(step.apply(Request::get("api", "/notes"), "after").param("after"), Some("p2"));
    /// ```
    pub fn apply(&self, request: Request, param: &str) -> Request {
        with_param(request, param, &self.token)
    }
}

/// Goes on with the next number. Remembers the page size that it counts in: at another size it would skip records.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let second = paging::PageNumber::first(1, 50).following();
/// assert_eq!((second.page, second.size), (2, 50));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNumber {
    /// The page to ask for.
    pub page: u64,
    /// The size that it counts in.
    pub size: u32,
}

impl PageNumber {
    /// The first page; vendors begin at 1 or at 0.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(paging::PageNumber::first(0, 50).page, 0);
    /// ```
    pub fn first(page: u64, size: u32) -> Self {
        PageNumber { page, size }
    }

    /// The page after this one.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(paging::PageNumber::first(1, 50).following().page, 2);
    /// ```
    pub fn following(&self) -> Self {
        PageNumber {
            page: self.page.saturating_add(1),
            size: self.size,
        }
    }

    /// Adds the number and the size.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let step = paging::PageNumber::first(1, 50);
    /// let request = step.apply(Request::get("api", "/items"), "page", Some("per_page"));
    /// assert_eq!(request.param("per_page"), Some("50"));
    /// ```
    pub fn apply(&self, request: Request, page_param: &str, size_param: Option<&str>) -> Request {
        let request = with_param(request, page_param, &self.page.to_string());
        match size_param {
            Some(name) => with_param(request, name, &self.size.to_string()),
            None => request,
        }
    }
}

/// Goes on from the last record's time, and counts pages only while that time stands still: for a list that is ordered by
/// time of change and has pages by number. Pages alone would lose records there: an edit takes its record out of the middle,
/// and one that was not read yet moves over the border to a page that was.
///
/// What shares the last record's time comes again, and costs nothing.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let step = paging::StampPage::first(None, 100);
/// // The page ended at 9:00: go on from there.
/// let step = step.behind(Some(32_400_000));
/// assert_eq!((step.since, step.page), (Some(32_400_000), 1));
/// // All of the next page is of 9:00 too: count.
/// let step = step.behind(Some(32_400_000));
/// assert_eq!((step.since, step.page), (Some(32_400_000), 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampPage {
    /// Ask for what has changed since then, ms since the Unix epoch; none: for all.
    pub since: Option<i64>,
    /// The page of that list to ask for.
    pub page: u64,
    /// The size that it counts in.
    pub size: u32,
}

impl StampPage {
    /// The first page, of a list that begins at the window's start.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(paging::StampPage::first(Some(5), 100).page, 1);
    /// ```
    pub fn first(since: Option<i64>, size: u32) -> Self {
        StampPage {
            since,
            page: 1,
            size,
        }
    }

    /// After a page behind which there is more; `last` is the time of its last record.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let step = paging::StampPage::first(Some(5), 100);
    /// assert_eq!(step.behind(Some(9)), paging::StampPage::first(Some(9), 100));
    /// // A record without a time moves nothing.
    /// assert_eq!(step.behind(None).page, 2);
    /// ```
    pub fn behind(&self, last: Option<i64>) -> Self {
        match last {
            Some(last) if self.since.is_none_or(|since| last > since) => {
                StampPage::first(Some(last), self.size)
            }
            _ => StampPage {
                page: self.page.saturating_add(1),
                ..self.clone()
            },
        }
    }

    /// Adds the number and the size. The time goes into the request as the vendor writes it.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let step = paging::StampPage::first(Some(0), 100);
    /// let request = Request::get("api", "/issues").query_if("updated_after", step.since.map(time::rfc3339));
    /// let request = step.apply(request, "page", Some("per_page"));
    /// assert_eq!(request.param("updated_after"), Some("1970-01-01T00:00:00Z"));
    /// assert_eq!((request.param("page"), request.param("per_page")), (Some("1"), Some("100")));
    /// ```
    pub fn apply(&self, request: Request, page_param: &str, size_param: Option<&str>) -> Request {
        let number = PageNumber::first(self.page, self.size);
        number.apply(request, page_param, size_param)
    }
}

/// Goes on after so many records.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let next = paging::Offset::first(100).following(80);
/// assert_eq!(next.offset, 80);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// So many records lie before the page.
    pub offset: u64,
    /// The size that is asked for.
    pub size: u32,
}

impl Offset {
    /// From the start.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(paging::Offset::first(100).offset, 0);
    /// ```
    pub fn first(size: u32) -> Self {
        Offset { offset: 0, size }
    }

    /// After a page that held so many records: what arrived counts, not what was asked for.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// // 80 came where 100 were asked for.
    /// assert_eq!(paging::Offset::first(100).following(80).offset, 80);
    /// ```
    pub fn following(&self, arrived: usize) -> Self {
        Offset {
            offset: self.offset.saturating_add(arrived as u64),
            size: self.size,
        }
    }

    /// Adds the offset and the size.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let step = paging::Offset::first(100).following(80);
    /// let request = step.apply(Request::get("api", "/items"), "skip", Some("take"));
    /// assert_eq!((request.param("skip"), request.param("take")), (Some("80"), Some("100")));
    /// ```
    pub fn apply(&self, request: Request, offset_param: &str, size_param: Option<&str>) -> Request {
        let request = with_param(request, offset_param, &self.offset.to_string());
        match size_param {
            Some(name) => with_param(request, name, &self.size.to_string()),
            None => request,
        }
    }
}

/// Goes on at a URL that the vendor gave, in a `Link` header or in the body.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let step = paging::NextUrl { url: "https://api.example.test/orders?page=2".to_owned() };
/// assert_eq!(step.request("api").origin, "api");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextUrl {
    /// The whole URL.
    pub url: String,
}

impl NextUrl {
    /// The answer's `Link: <...>; rel="next"` (RFC 8288).
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(200, "[]")
    ///     .with_url("https://api.example.test/orders")
    ///     .with_header("Link", r#"<?page=2>; rel="next""#);
    /// let step = paging::NextUrl::from_link(&answer).unwrap();
    /// assert_eq!(step.url, "https://api.example.test/orders?page=2");
    /// ```
    pub fn from_link(response: &Response) -> Option<Self> {
        link::next(response).map(|url| NextUrl { url })
    }

    /// A URL in the body, which may be relative to the one that was asked; nothing, `null` and `""` are the end.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(200, r#"{"next":"/orders?page=2"}"#).with_url("https://api.example.test/orders");
    /// let found = json::at(answer.text()?, "/next")?;
    /// let step = paging::NextUrl::from_body(found, &answer).unwrap();
    /// assert_eq!(step.url, "https://api.example.test/orders?page=2");
    /// # Ok::<(), Fault>(())
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let step = paging::NextUrl { url: "https://api.example.test/orders?page=2".to_owned() };
    /// assert!(step.request("api").query.is_empty());
    /// ```
    pub fn request(&self, origin: &str) -> Request {
        Request::follow(origin, self.url.clone())
    }
}

/// Sets a parameter, in place of one of that name.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let request = Request::get("api", "/orders").query("page", 1);
/// let next = paging::with_param(request, "page", "2");
/// assert_eq!(next.param("page"), Some("2"));
/// assert_eq!(next.query.len(), 1);
/// ```
pub fn with_param(mut request: Request, name: &str, value: &str) -> Request {
    request.query.retain(|(key, _)| key != name);
    request.query.push((name.to_owned(), value.to_owned()));
    request
}
