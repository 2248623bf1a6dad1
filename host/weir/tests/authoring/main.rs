//! Writing connectors, with the binary and with the real components.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

#[path = "../cli_support/mod.rs"]
mod cli_support;
#[path = "../../../runtime/tests/all/guest.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod guest;

mod connectors;
mod dev;
mod hand_made;
mod languages;
mod record;
mod reference;
mod rust;
mod simulate;
