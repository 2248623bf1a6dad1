//! What a call asks for.

use super::{Position, Refusal};
use crate::dice::{Dice, seed_for};
use crate::spec::{CollectionSpec, Paging};
use crate::world::{Renderer, World};

/// The parameters of a call, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
    pub(crate) size: usize,
    pub(crate) position: Position,
    /// Decides which pages are short or empty: the same for the same call, so that an ETag can hold.
    chance: u64,
}

impl Query {
    /// The first page of a walk.
    pub(crate) fn is_first(&self) -> bool {
        self.position.turn == 0 && self.position.given == 0 && self.position.place.is_none()
    }

    /// Whether this call meets an empty page although more follows. Never twice in a row.
    pub(super) fn plays_empty(&self, spec: &CollectionSpec) -> bool {
        let by_token = matches!(
            spec.paging,
            Paging::Token { .. }
                | Paging::Link { .. }
                | Paging::NextUrl { .. }
                | Paging::Feed { .. }
        );
        by_token && self.position.turn % 2 == 1 && Dice::new(self.chance).chance(spec.empty_pages)
    }

    /// How many records the page may hold.
    pub(super) fn length(&self, spec: &CollectionSpec) -> usize {
        let mut dice = Dice::new(self.chance ^ 1);
        // Page numbers and offsets count full pages: a short one would leave records out.
        let may_be_short = spec.walks_by_place() && self.size > 1;
        if may_be_short && dice.chance(spec.short_pages) {
            let shorter = 1 + dice.below(self.size as u64 - 1);
            return usize::try_from(shorter).unwrap_or(1);
        }
        self.size
    }
}

/// Reads the parameters of a call. Unknown ones are ignored, as nearly everywhere.
pub(crate) fn read(
    spec: &CollectionSpec,
    (renderer, world): (&Renderer, &World),
    params: &[(String, String)],
    raw_query: &str,
    now: i64,
    lost_before: i64,
) -> Result<Query, Refusal> {
    let param = |name: &str| {
        params
            .iter()
            .find(|(have, _)| !name.is_empty() && have == name)
            .map(|(_, value)| value.as_str())
    };
    let time = |name: &str| {
        param(name)
            .filter(|text| !text.is_empty())
            .map(|text| {
                let format = spec.filter.format;
                format
                    .read(text)
                    .ok_or_else(|| Refusal::bad(format!("{name}: {text:?} is no time")))
            })
            .transpose()
    };
    let number = |name: &str| {
        param(name)
            .map(|text| {
                text.parse::<u64>()
                    .map_err(|_| Refusal::bad(format!("{name}: {text:?} is no number")))
            })
            .transpose()
    };

    let mut since = time(&spec.filter.since.param)?;
    let mut until = time(&spec.filter.until.param)?;
    let size = number(&spec.page_size.param)?
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(spec.page_size.default)
        .min(spec.page_size.max);
    if size == 0 {
        return Err(Refusal::bad(format!(
            "{}: must be at least 1",
            spec.page_size.param
        )));
    }

    let fresh = Position {
        issued: now,
        since,
        until,
        ..Position::default()
    };
    let position = match &spec.paging {
        Paging::None => fresh,
        Paging::Page { param, first } => {
            let page = number(param)?.unwrap_or(*first);
            let before = page
                .checked_sub(*first)
                .ok_or_else(|| Refusal::bad(format!("{param}: pages begin at {first}")))?;
            Position {
                given: before.saturating_mul(size as u64),
                turn: before,
                ..fresh
            }
        }
        Paging::Offset { param } => Position {
            given: number(param)?.unwrap_or(0),
            ..fresh
        },
        Paging::Keyset {
            after_time,
            after_id,
        } => match param(after_id).filter(|id| !id.is_empty()) {
            None => fresh,
            Some(id) => {
                let record = renderer
                    .number(id)
                    .ok_or_else(|| Refusal::bad(format!("{after_id}: {id:?} is no id")))?;
                let stamp = time(after_time)?
                    .ok_or_else(|| Refusal::bad(format!("{after_id} needs {after_time}")))?;
                if *after_time == spec.filter.since.param {
                    // The pair takes the filter's place: everything behind (stamp, id), the rest of the tie included.
                    since = None;
                }
                Position {
                    place: Some((stamp, record)),
                    ..fresh
                }
            }
        },
        Paging::AfterId { param: name } => match param(name).filter(|id| !id.is_empty()) {
            None => fresh,
            Some(id) => {
                let place = renderer
                    .number(id)
                    .and_then(|record| world.shelf().place(record))
                    .ok_or_else(|| Refusal::bad(format!("{name}: there is no {id:?}")))?;
                Position {
                    place: Some(place),
                    ..fresh
                }
            }
        },
        Paging::Token {
            param: name,
            ttl_ms,
            ..
        }
        | Paging::Feed {
            param: name,
            ttl_ms,
            ..
        } => token(param(name), fresh, *ttl_ms, now, lost_before)?,
        Paging::Link { .. } | Paging::NextUrl { .. } => {
            token(param("page_token"), fresh, 0, now, lost_before)?
        }
    };
    if matches!(
        spec.paging,
        Paging::Token { .. } | Paging::Link { .. } | Paging::NextUrl { .. }
    ) {
        since = position.since;
        until = position.until;
    }
    Ok(Query {
        since,
        until,
        size,
        position,
        chance: seed_for(0, raw_query),
    })
}

fn token(
    text: Option<&str>,
    fresh: Position,
    ttl_ms: i64,
    now: i64,
    lost_before: i64,
) -> Result<Position, Refusal> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(fresh);
    };
    let position =
        Position::read(text).ok_or_else(|| Refusal::bad("this cursor was never given"))?;
    let too_old = ttl_ms > 0 && now - position.issued > ttl_ms;
    if too_old || position.issued < lost_before {
        return Err(Refusal::gone());
    }
    Ok(position)
}
