//! The vendor's quotas: what is counted, what is refused, and what the answers tell of it.

mod headers;
mod quota;
mod wait;

pub(crate) use headers::{BucketView, write};
pub(crate) use quota::{Quotas, Refused};
pub(crate) use wait::{Told, tell};
