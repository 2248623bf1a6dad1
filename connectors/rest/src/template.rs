//! Placeholders in paths, query values and bodies: `{since}`, `{until}`, `{page_size}`, `{partition}`, `{parent.id}`.
//!
//! Promises: braces that are none of these stay as they are, since JSON and GraphQL are full of them; a template
//! with a missing value yields nothing, so that its parameter is left out instead of being sent half filled.

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'t> {
    Since,
    Until,
    PageSize,
    Partition,
    /// Members to descend through in the parent's record.
    Parent(&'t str),
}

impl<'t> Name<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        Some(match text {
            "since" => Name::Since,
            "until" => Name::Until,
            "page_size" => Name::PageSize,
            "partition" => Name::Partition,
            _ => Name::Parent(
                text.strip_prefix("parent.")
                    .filter(|path| !path.is_empty())?,
            ),
        })
    }
}

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    Text(&'t str),
    Value(Name<'t>),
    /// `{+name}`: a path whose slashes stay.
    Spread(Name<'t>),
    /// `{word}` that is no placeholder.
    Unknown(&'t str),
}

/// The pieces of a template, in order.
pub(crate) fn parts(template: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, left) = split(rest);
        rest = left;
        Some(part)
    })
}

/// The first piece, and what follows it.
fn split(text: &str) -> (Part<'_>, &str) {
    let mut from = 0;
    while let Some(open) = text
        .get(from..)
        .and_then(|t| t.find('{'))
        .map(|at| at + from)
    {
        if let Some((part, end)) = placeholder(text, open) {
            if open == 0 {
                return (part, text.get(end..).unwrap_or_default());
            }
            let (before, left) = text.split_at(open);
            return (Part::Text(before), left);
        }
        from = open + 1;
    }
    (Part::Text(text), "")
}

/// The `{word}` at `open`, and where it ends. Words are of letters, digits, `_`, `.` and `-`.
fn placeholder(text: &str, open: usize) -> Option<(Part<'_>, usize)> {
    let inside = text.get(open + 1..)?;
    let close = inside.find('}')?;
    let word = inside.get(..close)?;
    let (spread, word) = match word.strip_prefix('+') {
        Some(word) => (true, word),
        None => (false, word),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if word.is_empty() || !word.chars().all(plain) {
        return None;
    }
    let part = match (Name::parse(word), spread) {
        (Some(name), false) => Part::Value(name),
        (Some(name), true) => Part::Spread(name),
        (None, _) => Part::Unknown(text.get(open..=open + 1 + close)?),
    };
    Some((part, open + close + 2))
}

/// Fills a template; none when a value is missing. The second argument of `value` says whether slashes stay.
pub(crate) fn fill<E>(
    template: &str,
    value: impl Fn(Name<'_>, bool) -> Result<Option<String>, E>,
) -> Result<Option<String>, E> {
    let mut filled = String::with_capacity(template.len() + 16);
    for part in parts(template) {
        let found = match part {
            Part::Text(text) | Part::Unknown(text) => {
                filled.push_str(text);
                continue;
            }
            Part::Value(name) => value(name, false)?,
            Part::Spread(name) => value(name, true)?,
        };
        match found {
            Some(found) => filled.push_str(&found),
            None => return Ok(None),
        }
    }
    Ok(Some(filled))
}

/// Whether the template holds a placeholder for which `wanted` is true.
pub(crate) fn names(template: &str, wanted: impl Fn(Name<'_>) -> bool) -> bool {
    parts(template).any(|part| match part {
        Part::Value(name) | Part::Spread(name) => wanted(name),
        Part::Text(_) | Part::Unknown(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(name: Name<'_>, spread: bool) -> Result<Option<String>, ()> {
        Ok(match name {
            Name::Partition if spread => Some("a/b".to_owned()),
            Name::Partition => Some("a%2Fb".to_owned()),
            Name::Parent("customer.id") => Some("7".to_owned()),
            Name::PageSize => Some("50".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn fills_what_it_knows_and_leaves_other_braces() {
        for (template, expected) in [
            ("/shops/{partition}/orders", Some("/shops/a%2Fb/orders")),
            ("/repos/{+partition}/issues", Some("/repos/a/b/issues")),
            ("/customers/{parent.customer.id}", Some("/customers/7")),
            (
                "query { orders(first: {page_size}) { id } }",
                Some("query { orders(first: 50) { id } }"),
            ),
            ("{other}{", Some("{other}{")),
            ("updated >= {since}", None),
            ("", Some("")),
        ] {
            assert_eq!(
                fill(template, values).unwrap().as_deref(),
                expected,
                "{template}"
            );
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_template(template in "[a{}+.é/]{0,20}|(\\{(since|partition|x)\\}|[{} ]){0,6}") {
            let whole: String = parts(&template)
                .map(|part| match part {
                    Part::Text(text) | Part::Unknown(text) => text.to_owned(),
                    Part::Value(Name::Since) => "{since}".to_owned(),
                    Part::Value(Name::Partition) => "{partition}".to_owned(),
                    other => format!("{other:?}"),
                })
                .collect();
            prop_assert_eq!(whole, template);
        }
    }
}
