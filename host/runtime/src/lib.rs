//! Runs connectors.
//!
//! A connector is a WebAssembly component for the world `weir:connector/plugin`: a pure function of what it is
//! given. This crate turns a file into a [`Connector`] and calls it, each time in a fresh instance, within
//! limits of memory, time, size and log lines. Whatever the connector does, the caller gets a value or a typed
//! error, and the process lives on.
//!
//! | file | job |
//! | --- | --- |
//! | `runtime` | the engine, its cache and workers; from a file to a connector |
//! | `connector` | the calls |
//! | `contract` | the contract's types, and what a result must keep to |
//! | `limits` | every limit with its reason |
//! | `workers` | the threads that calls belong on |
//! | `kept` | instances that answer more than one call, for a simulation |
//! | `load`, `guest`, `cache`, `cwasm`, `engine` | how it is done |

mod cache;
mod connector;
pub mod contract;
mod cwasm;
mod engine;
mod error;
mod guest;
mod kept;
pub mod limits;
mod load;
mod runtime;
mod text;
mod workers;

pub use cache::CacheStats;
pub use connector::{Connector, Digest};
pub use error::{Blame, CallError, CallErrorKind, Function, RuntimeError};
pub use limits::Limits;
pub use load::{LoadError, Refusal};
pub use runtime::{Runtime, RuntimeConfig};
pub use workers::{WorkerGone, Workers};
