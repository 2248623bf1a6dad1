//! From one page to the next.
//!
//! Promises: a walk ends by the vendor's own sign (`has_more`, `is_last`, no token, no link, an empty page, the total),
//! not by a short page, since vendors cap pages silently and filter after paging. A page that brings nothing beyond the
//! position it was asked for ends the walk, and says so when there ought to have been more. What repeats over several
//! pages is the host's to see: it remembers every step of a walk.

use weir_sdk::json::{Listing, Raw, Row};
use weir_sdk::{Response, Task, link, log, time, url};

use crate::Rest;
use crate::answer::Envelope;
use crate::config::{OrderKey, Scalar};
use crate::endpoint::{After, Endpoint, Paging, Place};
use crate::errors::present;
use crate::stamp::Bound;
use crate::step::Step;

/// A page that is full of one time is asked for again at this many times its size, where the vendor takes a size.
const LARGER: u32 = 4;
/// And once more, up to this many times the stream's own page size.
const LARGEST: u32 = 16;

/// The way on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Onward {
    pub(crate) next: Option<Step>,
    /// There is more, and no way to it.
    pub(crate) truncated: bool,
    /// The page is one that the walk has read before: its records say nothing.
    pub(crate) again: bool,
}

impl Onward {
    fn end() -> Self {
        Onward::default()
    }

    fn cut() -> Self {
        Onward {
            truncated: true,
            ..Onward::default()
        }
    }

    fn to(step: Step) -> Self {
        Onward {
            next: Some(step),
            ..Onward::default()
        }
    }

    /// Goes on, or ends where there is nothing to go on with, and says that something was left behind.
    fn past(step: Option<Step>) -> Self {
        Onward {
            next: step,
            truncated: true,
            again: false,
        }
    }
}

/// One page, as far as paging is concerned.
pub(crate) struct Arrived<'l, 'p, 'a> {
    pub(crate) listing: Option<&'l Listing<'p, 'a>>,
    pub(crate) envelope: &'l Envelope<'l, 'a>,
    pub(crate) response: &'a Response,
    /// The listing's field with a record's time of change; the id is its first field.
    pub(crate) time_field: Option<usize>,
}

impl<'a> Arrived<'_, '_, 'a> {
    fn count(&self) -> u64 {
        self.listing.map_or(0, |listing| listing.len() as u64)
    }

    /// What the vendor says about further pages; none when it says nothing.
    fn more(&self, endpoint: &Endpoint) -> Option<bool> {
        let says = |pointer: &Option<String>| {
            pointer
                .as_deref()
                .and_then(|pointer| self.envelope.get(pointer))
        };
        says(&endpoint.has_more)
            .map(present)
            .or_else(|| says(&endpoint.is_last).map(|last| !present(last)))
    }

    fn total(&self, endpoint: &Endpoint) -> Option<u64> {
        endpoint
            .total
            .as_deref()
            .and_then(|pointer| self.envelope.get(pointer))
            .and_then(Raw::u64)
    }
}

/// Where the walk goes after this page.
pub(crate) fn onward(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    step: Option<&Step>,
    page: &Arrived<'_, '_, '_>,
) -> Onward {
    let more = page.more(endpoint);
    if more == Some(false) {
        return Onward::end();
    }
    let count = page.count();
    let short = endpoint.short_page_ends && more.is_none() && count < u64::from(task.page_size);
    match &endpoint.paging {
        Paging::None => {
            let full = endpoint.page_size_param.is_some() && count >= u64::from(task.page_size);
            let all_here = page.total(endpoint).is_some_and(|total| count >= total);
            Onward {
                truncated: more == Some(true) || (full && !all_here),
                ..Onward::default()
            }
        }
        Paging::Keyset { id, time } => keyset(
            endpoint,
            task,
            step,
            page,
            id.is_some(),
            time.as_ref(),
            short,
        ),
        Paging::Token { place, end, .. } => {
            let token = match place {
                Place::Body(pointer) => match page.envelope.get(pointer) {
                    Some(raw) if raw.json().starts_with(['{', '[']) && present(raw) => {
                        log::warn(format!("{pointer} holds {}, which is no token", raw.kind()));
                        return Onward::cut();
                    }
                    found => found.and_then(scalar),
                },
                Place::Header(name) => page
                    .response
                    .header(name)
                    .filter(|value| !value.is_empty())
                    .map(|value| Scalar {
                        text: value.to_owned(),
                        quoted: true,
                    }),
            };
            let token = token.filter(|token| !end.iter().any(|mark| mark.text == token.text));
            match token.map(Step::Token) {
                // Some vendors never stop handing out their last token.
                Some(next) if count == 0 && step == Some(&next) => Onward::end(),
                Some(next) => Onward::to(next),
                None if more == Some(true) => Onward::cut(),
                None => Onward::end(),
            }
        }
        Paging::Page { first, .. } => {
            let (number, before) = match step {
                Some(Step::Page { number, seen }) => (*number, *seen),
                _ => (*first, 0),
            };
            let seen = before.saturating_add(count);
            if counted_out(endpoint, page, seen, short, more) {
                return Onward::end();
            }
            if endpoint
                .result_cap
                .is_some_and(|cap| seen >= u64::from(cap))
            {
                return Onward::cut();
            }
            Onward::to(Step::Page {
                number: number.saturating_add(1),
                seen,
            })
        }
        Paging::Offset { .. } => {
            let before = match step {
                Some(Step::Offset(offset)) => *offset,
                _ => 0,
            };
            let seen = before.saturating_add(count);
            if counted_out(endpoint, page, seen, short, more) {
                return Onward::end();
            }
            // What arrived counts, not what was asked for: the vendor may cap pages. An empty page that claims more
            // was filtered after paging.
            let next = if count == 0 {
                before.saturating_add(u64::from(task.page_size))
            } else {
                seen
            };
            if endpoint
                .result_cap
                .is_some_and(|cap| next >= u64::from(cap))
            {
                return Onward::cut();
            }
            Onward::to(Step::Offset(next))
        }
        Paging::Link { rel } => followed(link::related(page.response, rel), more),
        Paging::NextUrl { pointer } => {
            let found = page.envelope.get(pointer).and_then(Raw::string);
            let found = found
                .as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty());
            followed(
                found.and_then(|text| url::resolve(&page.response.url, text)),
                more,
            )
        }
    }
}

fn followed(url: Option<String>, more: Option<bool>) -> Onward {
    match url {
        Some(url) => Onward::to(Step::Url(url)),
        None if more == Some(true) => Onward::cut(),
        None => Onward::end(),
    }
}

/// Whether a walk that counts is over.
fn counted_out(
    endpoint: &Endpoint,
    page: &Arrived<'_, '_, '_>,
    seen: u64,
    short: bool,
    more: Option<bool>,
) -> bool {
    if more == Some(true) {
        return false;
    }
    // A total that less than one page goes beyond counts something else, or nothing: some vendors say 0 or 1 always.
    let total = page.total(endpoint).filter(|total| *total >= page.count());
    short || page.count() == 0 || total.is_some_and(|total| seen >= total)
}

/// A token, id or time as the vendor wrote it; nothing for null, booleans, containers and the empty text.
fn scalar(raw: Raw<'_>) -> Option<Scalar> {
    raw.id().map(|text| Scalar {
        text,
        quoted: raw.string().is_some(),
    })
}

fn keyset(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    step: Option<&Step>,
    page: &Arrived<'_, '_, '_>,
    by_id: bool,
    by_time: Option<&After>,
    short: bool,
) -> Onward {
    let more = page.more(endpoint);
    // A last record that says nothing of its place must not end the walk: it goes on behind the one before it.
    let placed = |row: &Row<'_, '_>| {
        let says = |field| row.get(field).and_then(scalar).is_some();
        (!by_id || says(0)) && (by_time.is_none() || page.time_field.is_some_and(says))
    };
    let mut rows = page
        .listing
        .iter()
        .flat_map(|listing| listing.rows().rev())
        .filter(placed);
    let Some(last) = rows.next() else {
        if page.count() > 0 {
            log::warn(
                "none of the page's records says where it stands: there is no way on from them",
            );
        }
        return Onward {
            truncated: more == Some(true) || page.count() >= u64::from(task.page_size),
            ..Onward::default()
        };
    };
    let alone = rows.next().is_none();
    if short {
        return Onward::end();
    }
    let text = |field: Option<usize>| field.and_then(|field| last.get(field)).and_then(scalar);
    let time = by_time.and_then(|after| {
        let time = text(page.time_field)?;
        if after.as_written {
            Some(time)
        } else {
            in_window_format(endpoint, last.get(page.time_field?)?)
        }
    });
    if by_time.is_some() && time.is_none() {
        log::warn("the page's last record has no time of change to go on from");
        return Onward::cut();
    }
    match by_time {
        Some(after) if !by_id => by_time_alone(endpoint, task, step, page, after, time),
        _ => {
            let Some(id) = text(Some(0)) else {
                return Onward::cut();
            };
            #[cfg(feature = "planted")]
            let id = past_every_id(id);
            let next = Step::After { id: Some(id), time };
            if step == Some(&next) {
                // Nothing beyond the position. One record is the position itself, from a vendor that includes it.
                return Onward {
                    truncated: more == Some(true) || !alone,
                    ..Onward::default()
                };
            }
            Onward::to(next)
        }
    }
}

/// An id behind all others: `(time, id) > (t, i)` becomes `time > t`, and what shares the last time is passed over.
#[cfg(feature = "planted")]
fn past_every_id(id: Scalar) -> Scalar {
    let head = id.text.trim_end_matches(|c: char| c.is_ascii_digit());
    Scalar {
        text: format!("{head}{}", u64::MAX),
        ..id
    }
}

/// Paging by a time that need not be unique. Ties on a page's border are asked for again. A group of ties that fills a
/// page is asked for on a larger page, where the vendor takes a size; what does not fit there either is passed over, with
/// the walk marked as truncated: without an id there is no way into it.
fn by_time_alone(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    step: Option<&Step>,
    page: &Arrived<'_, '_, '_>,
    after: &After,
    last: Option<Scalar>,
) -> Onward {
    let (before, size) = match step {
        Some(Step::After { time, .. }) => (time.as_ref(), task.page_size),
        Some(Step::Ties { after, size, .. }) => (after.as_ref(), *size),
        Some(Step::Past(time)) => (Some(time), task.page_size),
        _ => (None, task.page_size),
    };
    if let Some(Step::Ties { past, .. }) = step
        && page.count() <= u64::from(size / LARGER)
    {
        // The vendor gives no more than before.
        return Onward {
            again: true,
            ..passed_over(past.clone())
        };
    }
    let at = |time: Option<Scalar>| Step::After { id: None, time };
    let full = page.more(endpoint) == Some(true) || page.count() >= u64::from(size);
    let other_time = time_before_the_last(page);
    let onward = match (other_time, step) {
        (None, Some(Step::Ties { past, .. })) if !full => Onward::to(Step::Past(past.clone())),
        (None, _) if full && (page.count() > 1 || !after.exclusive) => {
            let past = if after.exclusive {
                last
            } else {
                page.time_field
                    .and_then(|field| page.listing?.last()?.get(field))
                    .and_then(|raw| beyond(endpoint, raw))
            };
            let larger = size.saturating_mul(LARGER);
            let may_grow = endpoint.page_size_param.is_some()
                && page.count() >= u64::from(size)
                && larger <= task.page_size.saturating_mul(LARGEST);
            match past {
                Some(past) if may_grow => Onward::to(Step::Ties {
                    after: before.cloned(),
                    size: larger,
                    past,
                }),
                Some(past) => passed_over(past),
                None => Onward::cut(),
            }
        }
        (Some(raw), _) if after.exclusive && (full || matches!(step, Some(Step::Ties { .. }))) => {
            // The last time may go on behind the border: begin again after the one before it. Whether a larger page was
            // cut, nobody knows.
            let earlier = if after.as_written {
                scalar(raw)
            } else {
                in_window_format(endpoint, raw)
            };
            match earlier {
                Some(earlier) if Some(&earlier) != before && Some(&earlier) != last.as_ref() => {
                    Onward::to(at(Some(earlier)))
                }
                _ if before == last.as_ref() => Onward::cut(),
                _ => Onward::to(at(last)),
            }
        }
        // The ties at the position, once more, and nothing behind them.
        _ if before == last.as_ref() && !full => Onward::end(),
        _ if before == last.as_ref() => Onward::past(None),
        _ => Onward::to(at(last)),
    };
    // What follows would have been on the larger page, had the vendor filled it.
    let followed = matches!(step, Some(Step::Past(_))) && page.count() > 0;
    Onward {
        truncated: onward.truncated || followed,
        ..onward
    }
}

fn passed_over(past: Scalar) -> Onward {
    log::warn(
        "more records share one time of change than a page holds: some of them are out of reach",
    );
    Onward::past(Some(Step::After {
        id: None,
        time: Some(past),
    }))
}

/// The last time on the page that is not its last record's.
fn time_before_the_last<'a>(page: &Arrived<'_, '_, 'a>) -> Option<Raw<'a>> {
    let field = page.time_field?;
    let listing = page.listing?;
    let mut times = listing.rows().rev().filter_map(|row| row.get(field));
    let last = times.next()?;
    times.find(|time| time.json() != last.json())
}

/// The vendor refuses a page of that size: the walk goes on without it.
pub(crate) fn refused(step: Option<&Step>) -> Option<Onward> {
    match step {
        Some(Step::Ties { past, .. }) => Some(passed_over(past.clone())),
        _ => None,
    }
}

/// A record's time in the format of the window's parameters, not later than it (earlier, when the walk goes down).
fn in_window_format(endpoint: &Endpoint, raw: Raw<'_>) -> Option<Scalar> {
    written(endpoint, moment(endpoint, raw)?)
}

/// The first moment behind a record's own that the vendor can tell from it, in the format that its parameter takes.
fn beyond(endpoint: &Endpoint, raw: Raw<'_>) -> Option<Scalar> {
    let step = i64::try_from(endpoint.granularity).ok()?;
    let at = moment(endpoint, raw)?;
    let behind = match endpoint.order {
        OrderKey::Descending => at.checked_sub(step)?,
        _ => at.div_euclid(step).checked_add(1)?.checked_mul(step)?,
    };
    match &endpoint.paging {
        Paging::Keyset {
            time: Some(After {
                as_written: true, ..
            }),
            ..
        } => {
            let format = endpoint.updated_at.as_ref()?.format;
            let quoted = !matches!(
                format,
                time::Format::EpochSeconds | time::Format::EpochMillis
            );
            Some(Scalar {
                text: format.write(behind),
                quoted,
            })
        }
        _ => written(endpoint, behind),
    }
}

fn moment(endpoint: &Endpoint, raw: Raw<'_>) -> Option<i64> {
    raw.time(endpoint.updated_at.as_ref()?.format)
}

fn written(endpoint: &Endpoint, at: i64) -> Option<Scalar> {
    let window = &endpoint.window;
    let bound = if endpoint.order == OrderKey::Descending {
        Bound::Upper
    } else {
        Bound::Lower
    };
    Some(Scalar {
        text: window
            .format
            .write(at, bound, window.resolution, window.clock),
        quoted: !window.format.is_number(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_texts_and_numbers() {
        for (json, expected) in [
            (r#""abc""#, Some("abc")),
            ("17", Some("17")),
            (r#""""#, None),
            ("null", None),
            ("false", None),
            ("{}", None),
        ] {
            let text = format!("[{json}]");
            let raw = weir_sdk::json::at(&text, "/0").unwrap().unwrap();
            assert_eq!(
                scalar(raw).map(|token| token.text).as_deref(),
                expected,
                "{json}"
            );
        }
    }
}
