//! The `paging` table: a style, and the keys that belong to it.

use super::problem::{Checked, pointer_in, problem};
use super::{After, Paging, Place, UpdatedAt, Window};
use crate::config::{OrderKey, PagingKeys, StyleKey};

pub(super) fn check_paging(
    keys: PagingKeys,
    id: &[String],
    updated_at: Option<&UpdatedAt>,
    order: OrderKey,
    window: &Window,
) -> Checked<Paging> {
    let style = keys.style;
    let foreign = [
        ("after_id", keys.after_id.is_some(), &[StyleKey::Keyset][..]),
        ("after_time", keys.after_time.is_some(), &[StyleKey::Keyset]),
        (
            "param",
            keys.param.is_some(),
            &[StyleKey::Token, StyleKey::Page, StyleKey::Offset],
        ),
        ("first", keys.first.is_some(), &[StyleKey::Page]),
        ("token", keys.token.is_some(), &[StyleKey::Token]),
        (
            "token_header",
            keys.token_header.is_some(),
            &[StyleKey::Token],
        ),
        ("token_end", !keys.token_end.is_empty(), &[StyleKey::Token]),
        ("token_only", keys.token_only, &[StyleKey::Token]),
        ("after_exclusive", keys.after_exclusive, &[StyleKey::Keyset]),
        (
            "short_page_ends",
            keys.short_page_ends,
            &[StyleKey::Keyset, StyleKey::Page, StyleKey::Offset],
        ),
        ("rel", keys.rel.is_some(), &[StyleKey::Link]),
        ("url", keys.url.is_some(), &[StyleKey::NextUrl]),
    ];
    for (key, given, styles) in foreign {
        if given && !styles.contains(&style) {
            let names: Vec<&str> = styles.iter().map(|style| style.name()).collect();
            return problem(
                format!("paging.{key}"),
                format!(
                    "belongs to style {}, and the style is `{}`",
                    names.join(" or "),
                    style.name()
                ),
            );
        }
    }
    let param = |what: &str| match keys.param.clone() {
        Some(param) => Ok(param),
        None => problem(
            "paging.param",
            format!("is missing: name the parameter that takes {what}"),
        ),
    };
    Ok(match style {
        StyleKey::None => Paging::None,
        StyleKey::Keyset => {
            if keys.after_id.is_none() && keys.after_time.is_none() {
                return problem(
                    "paging.after_id",
                    "is missing: name the parameter that takes the last record's id, or `after_time`",
                );
            }
            if keys.after_id.is_some() && id.len() != 1 {
                return problem(
                    "paging.after_id",
                    "takes one id, and `id` names several fields: use another style",
                );
            }
            let time = match (keys.after_time, updated_at) {
                (None, _) if keys.after_exclusive => {
                    return problem(
                        "paging.after_exclusive",
                        "says something of `after_time`, which is missing",
                    );
                }
                (None, _) => None,
                (Some(_), None) => {
                    return problem(
                        "paging.after_time",
                        "needs `updated_at`: the time of the last record is what it takes",
                    );
                }
                (Some(_), Some(_)) if order == OrderKey::Unordered => {
                    return problem(
                        "order",
                        "is missing: paging by time needs \"ascending\" or \"descending\"",
                    );
                }
                (Some(param), Some(updated_at)) => {
                    let shared = window.since.as_ref() == Some(&param)
                        || window.until.as_ref() == Some(&param);
                    Some(After {
                        exclusive: keys.after_exclusive
                            || (window.since.as_ref() == Some(&param) && window.since_exclusive),
                        as_written: !shared || window.format.is_written_as(updated_at.format),
                        param,
                    })
                }
            };
            Paging::Keyset {
                id: keys.after_id,
                time,
            }
        }
        StyleKey::Token => {
            let place = match (keys.token.clone(), keys.token_header.clone()) {
                (Some(pointer), None) => {
                    pointer_in("paging.token", &pointer).map(|()| Place::Body(pointer))?
                }
                (None, Some(header)) => Place::Header(header.to_ascii_lowercase()),
                _ => {
                    return problem(
                        "paging.token",
                        "name either `token` (a pointer into the body) or `token_header`",
                    );
                }
            };
            let param = param("the token")?;
            Paging::Token {
                place,
                param,
                end: keys.token_end,
                alone: keys.token_only,
            }
        }
        StyleKey::Page => Paging::Page {
            param: param("the page's number")?,
            first: keys.first.unwrap_or(1),
        },
        StyleKey::Offset => Paging::Offset {
            param: param("the offset")?,
        },
        StyleKey::Link => Paging::Link {
            rel: keys.rel.unwrap_or_else(|| "next".to_owned()),
        },
        StyleKey::NextUrl => match keys.url {
            Some(pointer) => {
                pointer_in("paging.url", &pointer).map(|()| Paging::NextUrl { pointer })?
            }
            None => {
                return problem(
                    "paging.url",
                    "is missing: point at the next page's URL, such as \"/links/next\"",
                );
            }
        },
    })
}
