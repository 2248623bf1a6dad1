//! The error map: which answers are faults, of which class, and when to come back.
//!
//! Promises: the status alone never decides. Rules look at status, header and body of every answer, a 200 included; the
//! first that fits decides, and what no rule fits has the status's usual meaning.

use std::borrow::Cow;

use weir_sdk::json::{self, Raw};
use weir_sdk::{Class, Fault, Response, Scope, fault};

use crate::config::{ClassKey, Scalar, ScopeKey};
use crate::endpoint::{Place, Told};

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Ranges of statuses, both ends included; none: any status.
    pub(crate) statuses: Vec<(u16, u16)>,
    pub(crate) place: Option<Place>,
    pub(crate) test: Test,
    pub(crate) class: ClassKey,
    pub(crate) scope: Option<ScopeKey>,
    /// A pointer when it begins with a slash, else the code itself.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) wait: Option<Wait>,
    pub(crate) smaller_page: bool,
}

/// What is asked of the value at the rule's place.
#[derive(Debug)]
pub(crate) enum Test {
    /// It is there, and not null, false, or empty.
    Present,
    Equals(Vec<Scalar>),
    /// In any case.
    Contains(String),
}

/// When to come back.
#[derive(Debug)]
pub(crate) enum Wait {
    /// In ms.
    Fixed(u64),
    Told(Told),
}

/// What a rule makes of an answer.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// No error: there are no records.
    Empty,
    Fault(Fault),
}

impl Rule {
    /// Whether the rule is about this status.
    pub(crate) fn concerns(&self, status: u16) -> bool {
        self.statuses.is_empty()
            || self
                .statuses
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&status))
    }

    /// The pointer into the body that the rule looks at.
    pub(crate) fn pointer(&self) -> Option<&str> {
        self.place.as_ref().and_then(Place::pointer)
    }
}

/// Applies the first rule that fits. `body` looks a pointer up; `page_size` is what was asked for.
pub(crate) fn judge<'a>(
    rules: &[Rule],
    response: &'a Response,
    body: impl Fn(&str) -> Option<Raw<'a>>,
    page_size: u32,
) -> Option<Verdict> {
    for rule in rules.iter().filter(|rule| rule.concerns(response.status)) {
        let found = match &rule.place {
            None => None,
            Some(Place::Body(pointer)) => body(pointer).map(text_of),
            Some(Place::Header(name)) => response.header(name).map(Cow::Borrowed),
        };
        let fits = match (&rule.place, &rule.test, &found) {
            (None, _, _) => true,
            (Some(_), Test::Present, Some(value)) => says_yes(value),
            (Some(_), Test::Equals(values), Some(value)) => {
                values.iter().any(|wanted| wanted.text == *value)
            }
            (Some(_), Test::Contains(part), Some(value)) => value
                .to_ascii_lowercase()
                .contains(&part.to_ascii_lowercase()),
            (Some(_), _, None) => false,
        };
        if fits {
            return Some(verdict(rule, response, found, page_size));
        }
    }
    None
}

/// Whether a value says yes: it is not null, false, zero or empty.
pub(crate) fn present(value: Raw<'_>) -> bool {
    says_yes(&text_of(value))
}

fn says_yes(text: &str) -> bool {
    !matches!(text, "" | "null" | "false" | "0" | "[]" | "{}")
}

/// The value's text: a string without its quotes, anything else as it stands.
pub(crate) fn text_of(value: Raw<'_>) -> Cow<'_, str> {
    value.string().unwrap_or(Cow::Borrowed(value.json()))
}

fn verdict(
    rule: &Rule,
    response: &Response,
    found: Option<Cow<'_, str>>,
    page_size: u32,
) -> Verdict {
    let class = match rule.class {
        ClassKey::Empty => return Verdict::Empty,
        ClassKey::Temporary => Class::Temporary,
        ClassKey::RateLimited => Class::RateLimited,
        ClassKey::AuthExpired => Class::AuthExpired,
        ClassKey::AuthRevoked => Class::AuthRevoked,
        ClassKey::Permanent => Class::Permanent,
        ClassKey::PositionLost => Class::PositionLost,
        ClassKey::Pending => Class::Pending,
        ClassKey::Incomplete => Class::Incomplete,
        ClassKey::Unknown => Class::Unknown,
    };
    let scope = match (rule.scope, class) {
        (Some(scope), _) => scope.into(),
        (None, Class::RateLimited) => Scope::Credential,
        (None, Class::AuthExpired | Class::AuthRevoked) => Scope::Connection,
        (None, _) => Scope::Unit,
    };
    let text = response.lossy_text();
    let said = |pointer: &str| {
        json::at(&text, pointer)
            .ok()
            .flatten()
            .map(|value| text_of(value).into_owned())
            .filter(|said| !said.is_empty())
    };
    let code = match rule.code.as_deref() {
        Some(pointer) if pointer.starts_with('/') => said(pointer),
        Some(code) => Some(code.to_owned()),
        None if matches!(rule.test, Test::Equals(_)) => found.map(Cow::into_owned),
        None => None,
    };
    let message = match rule.message.as_deref().and_then(said) {
        Some(message) => format!("HTTP {}: {}", response.status, brief(&message)),
        None => fault::message(response),
    };
    let mut fault = Fault::new(class, message)
        .scope(scope)
        .code(code.unwrap_or_else(|| response.status.to_string()));
    fault.wait = match &rule.wait {
        None => None,
        Some(Wait::Fixed(ms)) => Some(*ms),
        Some(Wait::Told(told)) => told_wait(told, response, |pointer| {
            json::at(&text, pointer).ok().flatten()
        }),
    };
    if rule.smaller_page {
        fault.page_size = Some((page_size / 2).max(1));
    }
    Verdict::Fault(fault)
}

/// Foreign text for a message.
fn brief(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(160).collect()
}

impl From<ScopeKey> for Scope {
    fn from(key: ScopeKey) -> Scope {
        match key {
            ScopeKey::Unit => Scope::Unit,
            ScopeKey::Connection => Scope::Connection,
            ScopeKey::Credential => Scope::Credential,
            ScopeKey::App => Scope::App,
        }
    }
}

/// A duration that the vendor tells, in ms, rounded up; none when there is none or it makes no sense.
pub(crate) fn told_wait<'a>(
    told: &Told,
    response: &'a Response,
    body: impl Fn(&str) -> Option<Raw<'a>>,
) -> Option<u64> {
    let text = match &told.place {
        Place::Body(pointer) => text_of(body(pointer)?),
        Place::Header(name) => Cow::Borrowed(response.header(name)?),
    };
    let number: f64 = text.trim().parse().ok()?;
    let ms = (number * f64::from(told.unit.millis())).ceil();
    // `as` saturates; NaN, zero and what is negative say nothing.
    (ms.is_finite() && ms > 0.0).then_some(ms as u64)
}
