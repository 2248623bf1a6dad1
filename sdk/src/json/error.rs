//! What a text can be instead of what was wanted.

use crate::{Fault, fault};

/// Why a text could not be read.
///
/// ```
/// # use weir_sdk::prelude::*;
/// // As a fault it is an incomplete answer.
/// let error = Plan::new("/items").read("{}").unwrap_err();
/// assert_eq!(Fault::from(error).class, Class::Incomplete);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A web page where JSON was due: maintenance, a login, a proxy.
    Html {
        /// Its first words.
        excerpt: String,
    },
    /// Not JSON, or cut.
    Syntax {
        /// The byte at which reading stopped.
        at: usize,
        /// What was due there.
        wanted: &'static str,
    },
    /// JSON of another shape than serde was told.
    Parse {
        /// serde's words.
        what: String,
    },
    /// There is nothing at this path.
    Missing {
        /// Where: `/items`, or `/items/17/id`.
        path: String,
    },
    /// There is something else at this path.
    Shape {
        /// Where.
        path: String,
        /// What was due.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
}

impl Error {
    pub(crate) fn html(text: &str) -> Self {
        Error::Html {
            excerpt: fault::excerpt(text),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |path: &'_ str| {
            if path.is_empty() {
                "the top".to_owned()
            } else {
                path.to_owned()
            }
        };
        match self {
            Error::Html { excerpt } => write!(out, "a web page instead of JSON: {excerpt}"),
            Error::Syntax { at, wanted } => write!(
                out,
                "the answer is not whole JSON: {wanted} expected at byte {at}"
            ),
            Error::Parse { what } => write!(out, "the answer cannot be read: {what}"),
            Error::Missing { path } => write!(out, "the answer has nothing at {}", named(path)),
            Error::Shape {
                path,
                wanted,
                found,
            } => {
                write!(
                    out,
                    "the answer has {found} at {}, where {wanted} was expected",
                    named(path)
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for Fault {
    /// A web page passes by itself; anything else is an answer of which nothing may count.
    fn from(error: Error) -> Fault {
        let code = match &error {
            Error::Html { .. } => "html",
            Error::Syntax { .. } => "syntax",
            Error::Parse { .. } | Error::Missing { .. } | Error::Shape { .. } => "shape",
        };
        let message = error.to_string();
        let fault = if code == "html" {
            Fault::temporary(message)
        } else {
            Fault::incomplete(message)
        };
        fault.code(code)
    }
}
