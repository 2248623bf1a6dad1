//! The simulated vendor: one library that plays an API and remembers what it showed to whom, so that a run of a
//! poller can be judged.
//!
//! - [`spec`] says what a vendor is like: its collections, paging, order, quotas, faults. Plain data.
//! - [`vendor::Vendor`] plays it, in process, at the time that the caller names. The same spec, start and calls
//!   give the same answers, so a virtual clock can drive it through a month.
//! - [`server::Server`] puts vendors on a loopback port.
//! - [`bulk::Bulk`] is a large collection that costs next to nothing to serve, for measurements.
//! - [`ledger`] is what a vendor remembers, and [`judge`] compares it with what was delivered.
//! - [`demo`] holds three vendors that are hard in different ways.

pub mod answer;
pub mod bulk;
pub mod demo;
pub mod dice;
pub mod judge;
pub mod ledger;
mod limits;
mod listing;
#[cfg(test)]
mod oracle;
pub mod server;
pub mod spec;
pub mod time;
pub mod vendor;
pub mod world;
