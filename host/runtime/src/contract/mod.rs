//! What host and connector say to each other, as plain Rust types.
//!
//! The types are generated from `wit/connector.wit` and carry its documentation. Each released version of the
//! contract gets its own module of bindings; which one a file needs is read from the names of its exports.

mod check;
mod convert;

pub use bindings::exports::weir::connector::connector::{
    Descriptor, Fault, Page, Request, Response, Task,
};
pub use bindings::weir::connector::types::{
    AuthScheme, Body, Class, CursorKind, Data, Header, Limit, Method, Oauth2, Order, Origin,
    Pacing, Reason, Record, Scope, Span, Stream, Target, Window,
};
pub(crate) use bindings::{Plugin, PluginIndices, weir::connector::log::Level};
pub(crate) use check::{check_descriptor, check_page, check_partitions, check_request, tame_fault};
pub use convert::required_pointers;

/// The versions of `weir:connector` that this host can run.
pub const SUPPORTED_VERSIONS: &[&str] = &["0.1.0"];

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "generated code"
)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "plugin",
        imports: { default: trappable },
        additional_derives: [PartialEq],
    });
}

impl Response {
    /// The body as text; `None` if the answer was bytes.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) => Some(text),
            Body::Bytes(_) => None,
        }
    }
}

impl Record {
    /// The record's JSON: a slice of the answer, or the text that the connector made.
    ///
    /// `None` cannot happen for a record that came from [`read_response`](crate::Connector::read_response) with
    /// this very answer: its slices have been checked.
    pub fn json<'a>(&'a self, answer: &'a Response) -> Option<&'a str> {
        match &self.data {
            Data::Text(text) => Some(text),
            Data::Slice(span) => {
                let start = usize::try_from(span.start).ok()?;
                let end = start.checked_add(usize::try_from(span.len).ok()?)?;
                answer.text()?.get(start..end)
            }
        }
    }
}
