//! weir polls other people's rate-limited APIs and never loses a record.

pub mod clock;
pub mod config;
pub mod http;
pub mod sink;
pub mod store;
