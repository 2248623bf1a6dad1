//! The rules of polling without losing data, as pure functions.
//!
//! Everything here takes state, an event, the time and a random source, and returns a decision. Nothing
//! here does I/O, reads a clock or waits. A rule lives in one file that is named after it:
//!
//! | file | rule |
//! | --- | --- |
//! | [`model`] | the vocabulary that the rules share |
//! | [`canonical`], [`json_pointer`] | one record, one hash: what counts as a change |
//! | [`http_date`], [`retry_after`], [`limits`] | what a vendor's headers say about time and limits |
//! | [`wait`] | how long to stay away after an answer that failed |
//! | [`budget`] | the ledger of what vendors allow, and who may spend it |
//! | [`interval`] | how long until the next poll, and on which grid |
//! | [`window`] | which part of a stream to ask for, and how far the watermark may follow |
//! | [`overlap`] | how far before the watermark a window begins, from measured lag |
//! | [`coverage`] | what has been walked, and what is missing between |
//! | [`gaps`] | the list of what is missing, until it is filled or can't be |
//! | [`side`] | what a unit reads besides its main walk: settle passes and backfills |
//! | [`fault`] | what becomes of a unit after a failure |
//! | [`backoff`] | how long to wait where the vendor named no time: full jitter |
//! | [`miad`] | the interval for a vendor without published limits, from its latency |
//! | [`conditional`] | when to ask for a 304, and when to believe it |
//! | [`lease`] | one poll of a unit at a time |
//! | [`stagger`] | first starts, spread |
//! | [`still`] | units that are polled and bring nothing new for longer than ever |
//! | [`quiet`] | hours without calls, and requests that were just made |
//! | [`doubles`] | records of which one walk shows several versions |
//! | [`walk`] | one pass over a window: its steps, and the guard against loops |
//! | [`unit`] | what is remembered of a unit, and what becomes of it when a poll ends |
//! | [`planted`] | rules broken on purpose, for the simulation to find |
//! | [`clock_skew`] | the vendor's clock, from its `Date` |

pub mod backoff;
pub mod budget;
pub mod canonical;
pub mod clock_skew;
pub mod conditional;
pub mod coverage;
pub mod doubles;
pub mod fault;
pub mod gaps;
pub mod http_date;
pub mod interval;
pub mod json_pointer;
pub mod lease;
pub mod limits;
pub mod miad;
pub mod model;
mod moment;
pub mod overlap;
pub mod planted;
pub mod quiet;
pub mod retry_after;
pub mod rhythm;
pub mod side;
pub mod stagger;
pub mod still;
pub mod unit;
pub mod wait;
pub mod walk;
pub mod window;
