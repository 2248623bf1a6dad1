//! The tables of a stream, each checked by itself.

use weir_sdk::time;

use super::problem::{Checked, pointer_in, problem};
use super::{Mark, Place, Sync, Told, UpdatedAt, Window};
use crate::config::{
    ClassKey, ErrorKeys, MarkKeys, SourceKeys, StatusKey, SyncKeys, UpdatedAtKeys, WaitKeys,
    WindowKeys,
};
use crate::errors::{Rule, Test, Wait};
use crate::stamp::{self, Clock, Format};

pub(super) fn check_updated_at(keys: UpdatedAtKeys) -> Checked<UpdatedAt> {
    pointer_in("updated_at", &keys.pointer)?;
    let clock = check_clock(
        "updated_at",
        keys.utc_offset.as_deref(),
        keys.dst_offset.as_deref(),
    )?;
    let format = keys.format.as_deref().unwrap_or("rfc3339");
    let naive = format == "naive";
    if naive && clock.is_none() {
        return problem(
            "updated_at.utc_offset",
            "is missing, and naive times mean nothing without it: write \"+00:00\" for UTC",
        );
    }
    if !naive && clock.is_some() {
        return problem(
            "updated_at.utc_offset",
            format!("belongs to format = \"naive\", and the format is `{format}`"),
        );
    }
    let Some(format) = stamp::record_format(format, clock.unwrap_or_default()) else {
        return problem(
            "updated_at.format",
            format!("`{format}` is none of rfc3339, epoch_s, epoch_ms, http_date, naive"),
        );
    };
    Ok(UpdatedAt {
        pointer: keys.pointer,
        format,
    })
}

fn check_clock(key: &str, utc: Option<&str>, dst: Option<&str>) -> Checked<Option<Clock>> {
    let read = |name: &str, text: &str| match Clock::parse_offset(text) {
        Some(offset) => Ok(offset),
        None => problem(
            format!("{key}.{name}"),
            format!("`{text}` is no offset: write \"+05:30\" or \"-08:00\""),
        ),
    };
    match (utc, dst) {
        (None, None) => Ok(None),
        (None, Some(_)) => problem(
            format!("{key}.utc_offset"),
            "is missing: `dst_offset` alone says nothing about winter",
        ),
        (Some(utc), dst) => {
            let standard = read("utc_offset", utc)?;
            let summer = dst.map(|dst| read("dst_offset", dst)).transpose()?;
            Ok(Some(Clock::new(standard, summer.unwrap_or(standard))))
        }
    }
}

pub(super) fn check_mark(keys: MarkKeys) -> Checked<Mark> {
    pointer_in("deleted", &keys.pointer)?;
    Ok(Mark {
        pointer: keys.pointer,
        equals: keys.equals,
    })
}

pub(super) fn check_window(keys: Option<&WindowKeys>, granularity: u64) -> Checked<Window> {
    let Some(keys) = keys else {
        let format = Format::default();
        let resolution = format.resolution(granularity);
        return Ok(Window {
            since: None,
            until: None,
            format,
            clock: Clock::default(),
            since_exclusive: false,
            start: None,
            resolution,
        });
    };
    let text = keys.format.as_deref().unwrap_or("rfc3339");
    let format = match Format::parse(text) {
        Ok(format) => format,
        Err(what) => return problem("window.format", what),
    };
    let clock = check_clock(
        "window",
        keys.utc_offset.as_deref(),
        keys.dst_offset.as_deref(),
    )?;
    if clock.is_some() && !format.is_local() {
        return problem(
            "window.utc_offset",
            format!("`{text}` is always UTC: leave the offset out"),
        );
    }
    let start = match keys.start.as_deref() {
        None => None,
        Some(text) => match time::parse_rfc3339(text) {
            Some(ms) => Some(ms),
            None => {
                return problem(
                    "window.start",
                    format!("`{text}` is no RFC 3339 time: write \"2020-01-01T00:00:00Z\""),
                );
            }
        },
    };
    let resolution = format.resolution(granularity);
    Ok(Window {
        since: keys.since.clone(),
        until: keys.until.clone(),
        format,
        clock: clock.unwrap_or_default(),
        since_exclusive: keys.since_exclusive,
        start,
        resolution,
    })
}

pub(super) fn check_sync(keys: SyncKeys) -> Checked<Sync> {
    match (keys.token, keys.param, keys.url) {
        (Some(pointer), Some(param), None) => {
            pointer_in("sync.token", &pointer).map(|()| Sync::Token { pointer, param })
        }
        (None, None, Some(pointer)) => {
            pointer_in("sync.url", &pointer).map(|()| Sync::Url { pointer })
        }
        (Some(_), None, None) => problem(
            "sync.param",
            "is missing: name the parameter that takes the token in the next poll",
        ),
        _ => problem("sync", "takes either `token` with `param`, or `url`"),
    }
}

/// Reads a duration that the vendor tells.
pub(super) fn check_told(key: &str, keys: &SourceKeys) -> Checked<Told> {
    let place = match (&keys.pointer, &keys.header) {
        (Some(pointer), None) => pointer_in(key, pointer).map(|()| Place::Body(pointer.clone()))?,
        (None, Some(header)) => Place::Header(header.to_ascii_lowercase()),
        _ => return problem(key, "takes either `pointer` or `header`, and `unit`"),
    };
    Ok(Told {
        place,
        unit: keys.unit,
    })
}

/// One rule of the error map.
pub(super) fn check_rule(keys: &ErrorKeys) -> Checked<Rule> {
    let place = match (&keys.pointer, &keys.header) {
        (Some(pointer), None) => {
            pointer_in("errors.pointer", pointer).map(|()| Some(Place::Body(pointer.clone())))?
        }
        (None, Some(header)) => Some(Place::Header(header.to_ascii_lowercase())),
        (None, None) => None,
        (Some(_), Some(_)) => {
            return problem(
                "errors.header",
                "there is a `pointer` too: a rule looks at one place",
            );
        }
    };
    if place.is_none() && keys.status.is_none() {
        return problem(
            "errors",
            "a rule needs a `status`, a `pointer` or a `header`: else it would fit every answer",
        );
    }
    let test = match (&keys.equals, &keys.contains) {
        (Some(_), Some(_)) => {
            return problem(
                "errors.contains",
                "there is `equals` too: a rule compares once",
            );
        }
        (Some(values), None) => Test::Equals(values.to_vec()),
        (None, Some(part)) => Test::Contains(part.clone()),
        (None, None) => Test::Present,
    };
    if place.is_none() && !matches!(test, Test::Present) {
        return problem(
            "errors.pointer",
            "is missing: say which field `equals` or `contains` is about",
        );
    }
    let statuses = match &keys.status {
        None => Vec::new(),
        Some(StatusKey::One(status)) => vec![(*status, *status)],
        Some(StatusKey::Many(many)) => many.iter().map(|status| (*status, *status)).collect(),
        Some(StatusKey::Hundred(text)) => match text
            .strip_suffix("xx")
            .and_then(|digit| digit.parse::<u16>().ok())
        {
            Some(digit @ 1..=5) => vec![(digit * 100, digit * 100 + 99)],
            _ => {
                return problem(
                    "errors.status",
                    format!("`{text}` is no status: write 429, \"5xx\" or [403, 429]"),
                );
            }
        },
    };
    let wait = match &keys.wait {
        None => None,
        Some(WaitKeys::Fixed(millis)) => Some(Wait::Fixed(millis.0)),
        Some(WaitKeys::Told(told)) => Some(Wait::Told(check_told("errors.wait", told)?)),
    };
    if keys.class == ClassKey::Empty
        && (wait.is_some() || keys.smaller_page || keys.scope.is_some())
    {
        return problem(
            "errors.class",
            "`empty` is no error, so it takes no `wait`, `scope` or `smaller_page`",
        );
    }
    if let Some(message) = &keys.message {
        pointer_in("errors.message", message)?;
    }
    Ok(Rule {
        statuses,
        place,
        test,
        class: keys.class,
        scope: keys.scope,
        code: keys.code.clone(),
        message: keys.message.clone(),
        wait,
        smaller_page: keys.smaller_page,
    })
}
