//! How a host does, in numbers.

mod latencies;
mod meters;
mod remarks;

pub use latencies::Latencies;
pub use meters::{Counts, Meters, StreamCounts};
pub use remarks::{Remark, Remarks};
