//! Write a connector for weir as one type that implements one trait.
//!
//! A connector says which request comes next and what an answer means. Everything else (the network, secrets, retries,
//! limits, time, storage) is the host's. So a connector is a pure function, and its tests run with plain `cargo test`:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use weir_sdk::prelude::*;
//!
//! struct Notes;
//!
//! #[derive(Deserialize)]
//! struct Config {
//!     notebook: String,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct After {
//!     id: String,
//! }
//!
//! impl Connector for Notes {
//!     type Config = Config;
//!     type Step = After;
//!     type Cursor = ();
//!
//!     fn describe(_config: Option<&Config>) -> Result<Descriptor, Fault> {
//!         Ok(Descriptor::new("notes", "Notes", "0.1.0")
//!             .config_schema(r#"{"type":"object","required":["notebook"],"properties":{"notebook":{"type":"string"}}}"#)
//!             .origin(Origin::new("api", "https://notes.example.test/v1").auth(AuthScheme::Bearer))
//!             .stream(Stream::new("notes").key("/id").page_size(100)))
//!     }
//!
//!     fn build_request(task: &Task<Self>, step: Option<After>) -> Result<Request, Fault> {
//!         Ok(Request::get("api", "/notes")
//!             .query("notebook", &task.config.notebook)
//!             .query("limit", task.page_size)
//!             .query_if("updated_since", task.window.since.map(time::rfc3339))
//!             .query_if("after", step.map(|after| after.id)))
//!     }
//!
//!     fn read_response(task: &Task<Self>, _step: Option<After>, response: &Response) -> Result<Page<Self>, Fault> {
//!         let text = response.success()?.text()?;
//!         let plan = Plan::new("/notes").field("/id").field("/updated_at");
//!         let listing = plan.read(text)?;
//!         let mut page = Page::new();
//!         for row in listing.rows() {
//!             page.push(row.identified(text, 0).updated_at(row.time(1, time::Format::Rfc3339)));
//!         }
//!         let full = listing.len() >= task.page_size as usize;
//!         Ok(match page.last_id().map(str::to_owned) {
//!             Some(id) if full => page.next(After { id }),
//!             _ => page,
//!         })
//!     }
//! }
//!
//! weir_sdk::export!(Notes);
//! # fn main() {}
//! ```
//!
//! Records are not copied: a record is a slice of the answer, which the host takes from the text that it already has.

#[doc(hidden)]
pub mod bindings;
mod codec;
mod connector;
mod descriptor;
pub mod fault;
pub mod json;
pub mod link;
pub mod log;
mod page;
pub mod paging;
mod request;
mod response;
pub mod testing;
pub mod time;
pub mod url;

pub use bindings::exports::weir::connector::connector as contract;
pub use bindings::weir::connector::types::{
    AuthScheme, Body, Class, CursorKind, Data, Descriptor, Fault, Header, Limit, Method, Oauth2,
    Order, Origin, Pacing, Reason, Record, Request, Response, Scope, Span, Stream, Target, Window,
};
#[doc(hidden)]
pub use connector::Guest;
pub use connector::{Connector, Task};
pub use page::Page;

/// Everything that a connector usually needs.
pub mod prelude {
    pub use crate::json::{Plan, Raw, Row};
    pub use crate::{
        AuthScheme, Class, Connector, CursorKind, Descriptor, Fault, Limit, Oauth2, Order, Origin,
        Pacing, Page, Reason, Record, Request, Response, Scope, Stream, Task, json, link, log,
        paging, time, url,
    };
}

/// Milliseconds since the Unix epoch, UTC.
///
/// ```
/// let at: weir_sdk::Timestamp = 1_930_384_800_000;
/// assert_eq!(weir_sdk::time::rfc3339(at), "2031-03-04T10:00:00Z");
/// ```
pub type Timestamp = i64;

/// Makes a type that implements [`Connector`] the connector of this crate. Put it once at the crate's root; the crate's
/// type is `cdylib`. On anything but wasm it makes nothing.
///
/// ```
/// use weir_sdk::testing::Notes;
///
/// weir_sdk::export!(Notes);
/// ```
#[macro_export]
macro_rules! export {
    ($connector:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code)]
        mod __weir_export {
            use super::*;
            type Exported = $crate::Guest<$connector>;
            $crate::bindings::export_guest!(Exported with_types_in $crate::bindings);
        }
    };
}

/// The connector in the README compiles as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// What the guide for authors shows compiles as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../docs/writing-connectors.md")]
mod guide {}
