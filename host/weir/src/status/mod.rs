//! How a host does: the numbers, what needs a person, and the metrics.
//!
//! Promises:
//! - Counters come from the polls' rows as they are committed; what was not stored did not happen.
//! - The seven signals that retries would hide are there as metrics, in `weir status`, and alert at a threshold of
//!   `[alert]`: retries by connector and class, the age of the oldest job that is due, connections that need a sign-in,
//!   units that ran out of retries, codes that nobody has mapped, units pinned at their ceiling, open gaps and their age.
//! - What happened in the last day is told from the log of polls, with a host that runs and without one.
//!
//! Refuses: labels without a bound, and secrets.
//!
//! | file | job |
//! | --- | --- |
//! | `meters`, `latencies` | what was counted since the start |
//! | `census` | one pass over all units |
//! | `recent` | the last day, from the log of polls |
//! | `sinks` | what sinks refuse, and which takes nothing |
//! | `remarks` | what of vendors' answers was not understood |
//! | `review` | what waits for review |
//! | `snapshot` | all of it at a moment |
//! | `alerts` | what of it needs a person |
//! | `metrics`, `exposition` | the page that Prometheus reads |
//! | `serve` | the HTTP around it |

mod alerts;
mod census;
mod exposition;
mod latencies;
mod meters;
mod metrics;
mod recent;
mod remarks;
mod review;
mod serve;
mod sinks;
mod snapshot;

pub use alerts::{Need, SIGNALS};
pub(crate) use census::late_words;
pub use census::{Census, Named, Oddities, Rank, StreamTotals, Totals};
pub use latencies::Latencies;
pub use meters::{Counts, Meters, StreamCounts};
pub use recent::{Recent, Trouble};
pub use remarks::{Remark, Remarks};
pub use review::ReviewStatus;
pub use serve::{LastLook, listen, serve_client};
pub use sinks::SinkStatus;
pub use snapshot::{
    BudgetStatus, ConnectionStatus, CopiesStatus, FailingFile, NamedUnits, Retries, SignInNeeded,
    Snapshot, StreamStatus,
};
