//! From the parameters of a call to one page of a collection.

mod position;
mod query;
mod render;

use std::ops::Bound;

use crate::spec::{CollectionSpec, Paging};
use crate::world::{Place, Version, World};

pub(crate) use position::Position;
pub(crate) use query::{Query, read};
pub(crate) use render::{Damage, body};

/// Why a call gets no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    fn bad(message: impl Into<String>) -> Self {
        Refusal {
            status: 400,
            code: "invalid_request",
            message: message.into(),
        }
    }

    fn gone() -> Self {
        Refusal {
            status: 410,
            code: "cursor_expired",
            message: "this cursor is no longer known, start again without it".into(),
        }
    }
}

/// One page, not yet text.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) versions: Vec<Version>,
    /// Where the next page begins, and whether there is one. A feed always has a position.
    pub(crate) next: Position,
    pub(crate) has_more: bool,
    /// How many pages of the walk came before.
    pub(crate) turn: u64,
    /// How many records match the query in all.
    pub(crate) total: Option<u64>,
    /// How many pages these are.
    pub(crate) pages: Option<u64>,
}

/// The page that a query asks for.
pub(crate) fn page(
    spec: &CollectionSpec,
    world: &World,
    query: &Query,
    now: i64,
) -> Result<Page, Refusal> {
    let from = &query.position;
    let matching = matching(spec, world, query);
    let total = (!spec.envelope.total.field.is_empty()).then(|| count(matching(None), spec));
    let pages = (!spec.envelope.pages.is_empty())
        .then(|| (matching(None).count() as u64).div_ceil(query.size.max(1) as u64));

    let left = match spec.result_cap {
        Some(cap) if from.given >= cap.records && from.given > 0 && cap.refuse => {
            return Err(Refusal::bad(format!(
                "only the first {} results can be had",
                cap.records
            )));
        }
        Some(cap) => cap.records.saturating_sub(from.given),
        None => u64::MAX,
    };
    let mut next = Position {
        issued: now,
        turn: from.turn + 1,
        ..from.clone()
    };
    if query.plays_empty(spec) {
        let has_more = matching(from.place).next().is_some();
        if has_more && left > 0 {
            return Ok(Page {
                versions: Vec::new(),
                next,
                has_more,
                turn: from.turn,
                total,
                pages,
            });
        }
    }

    let size = query
        .length(spec)
        .min(usize::try_from(left).unwrap_or(usize::MAX));
    let skip = if from.place.is_some() { 0 } else { from.given };
    let mut rest = matching(from.place).skip(usize::try_from(skip).unwrap_or(usize::MAX));
    let mut versions = Vec::new();
    for (place, version) in rest.by_ref().take(size) {
        versions.push(version);
        next.given += 1;
        if spec.walks_by_place() {
            next.place = Some(place);
        }
    }
    let at_cap = spec
        .result_cap
        .is_some_and(|cap| next.given >= cap.records && !cap.refuse);
    let has_more = rest.next().is_some() && !at_cap;
    Ok(Page {
        versions,
        next,
        has_more,
        turn: from.turn,
        total,
        pages,
    })
}

fn count(matching: impl Iterator, spec: &CollectionSpec) -> u64 {
    let count = matching.count() as u64;
    count.saturating_add_signed(spec.envelope.total.wrong_by)
}

type Matches<'a> = Box<dyn Iterator<Item = (Place, Version)> + 'a>;

/// The records that match a query, behind a place, in the listing's order.
fn matching<'a>(
    spec: &'a CollectionSpec,
    world: &'a World,
    query: &'a Query,
) -> impl Fn(Option<Place>) -> Matches<'a> + 'a {
    let (low, high) = (lower(spec, query), upper(spec, query));
    let too_wide = spec.filter.widest_ms > 0 && width(query) > spec.filter.widest_ms;
    move |after| {
        let shelf = world.shelf();
        if too_wide {
            return Box::new(std::iter::empty());
        }
        if shelf.is_by_stamp() {
            let range = shelf.after(after, low, high);
            return Box::new(
                range.filter_map(|(place, index)| Some((place, *world.version(index)?))),
            );
        }
        let listing = shelf.after(after, Bound::Unbounded, Bound::Unbounded);
        Box::new(
            listing
                .filter_map(|(place, index)| Some((place, *world.version(index)?)))
                .filter(move |(_, version)| {
                    let place = (version.stamp, version.record);
                    std::ops::RangeBounds::contains(&(low, high), &place)
                }),
        )
    }
}

/// How wide a window was asked for; without both bounds it has no end. A later page is of a window that was answered.
fn width(query: &Query) -> i64 {
    if query.position.place.is_some() {
        return 0;
    }
    match (query.since, query.until) {
        (Some(since), Some(until)) => until.saturating_sub(since),
        _ => i64::MAX,
    }
}

fn lower(spec: &CollectionSpec, query: &Query) -> Bound<Place> {
    match query.since {
        Some(since) if spec.filter.since.inclusive => Bound::Included((since, 0)),
        Some(since) => Bound::Excluded((since, u64::MAX)),
        None => Bound::Unbounded,
    }
}

fn upper(spec: &CollectionSpec, query: &Query) -> Bound<Place> {
    match query.until {
        Some(until) if spec.filter.until.inclusive => Bound::Included((until, u64::MAX)),
        Some(until) => Bound::Excluded((until, 0)),
        None => Bound::Unbounded,
    }
}

impl CollectionSpec {
    /// Whether the next page begins behind a place in the listing, rather than behind a number of records.
    fn walks_by_place(&self) -> bool {
        !matches!(
            self.paging,
            Paging::Page { .. } | Paging::Offset { .. } | Paging::None
        )
    }
}

#[cfg(test)]
mod tests;
