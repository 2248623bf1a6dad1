//! weir polls other people's rate-limited APIs and never loses a record.
//!
//! ```text
//! due queue ─▶ lease ─▶ window + cursor ─▶ connector ─▶ guard ─▶ credentials ─▶ HTTP
//!                                                                              │
//!  sinks ◀─ outbox ◀─ ONE transaction ◀─ dedup ◀─ schema gate ◀─ connector ◀────┘
//! ```
//!
//! | part | job |
//! | --- | --- |
//! | [`config`] | `weir.toml` |
//! | [`catalogue`] | the connectors' directory: load, check, hot reload |
//! | [`children`] | streams below streams: a unit for each record of the stream above |
//! | [`trust`] | which connector files are trusted, and with what |
//! | [`connection`] | configuration and connector put together, ready to poll |
//! | [`schedule`] | the due queue: when which unit is polled, by one at a time |
//! | [`poll`] | one poll of one unit, from lease to commit |
//! | [`http`], [`oauth`] | client, guard, credentials; tokens that are renewed |
//! | [`secret_files`] | secrets that are read again when their files change |
//! | [`store`] | everything that must survive a crash |
//! | [`sink`], [`deliveries`] | delivery from the outbox |
//! | [`clock`], [`random`] | time and chance |
//! | [`simulate`] | the same host against simulated vendors, under a virtual clock |
//! | [`status`] | the numbers, alerts and metrics that tell how a host does |
//! | [`authoring`] | writing connectors: new, build, test, record |
//! | [`control`], [`verbs`], [`cli`] | what a person asks, how it is answered and shown |
//!
//! The rules themselves are in `weir-rules`, the wasm runtime in `weir-runtime`.

pub mod authoring;
pub mod catalogue;
pub mod children;
pub mod cli;
pub mod clock;
pub mod config;
pub mod connection;
pub mod control;
pub mod copies;
pub mod deliveries;
pub mod host;
pub mod http;
pub mod oauth;
pub mod poll;
pub mod random;
pub mod schedule;
pub mod secret_files;
pub mod sign_in;
pub mod simulate;
pub mod sink;
pub mod status;
pub mod stop;
pub mod store;
pub mod trust;
pub mod uuid;
pub mod verbs;
