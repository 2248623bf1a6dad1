//! The rules of polling without losing data, as pure functions.
//!
//! Everything here takes state, an event, the time and a random source, and returns a decision. Nothing
//! here does I/O, reads a clock or waits. A rule lives in one file that is named after it:
//!
//! | file | rule |
//! | --- | --- |
//! | [`model`] | the vocabulary that the rules share |

pub mod model;
pub mod unit;
pub mod walk;
