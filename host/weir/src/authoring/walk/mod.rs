//! Recorded walks: files that hold what a vendor answered and what a connector made of it.
//!
//! | file | job |
//! | --- | --- |
//! | `file` | the file's format |
//! | `shown` | the contract's values as they stand in it |
//! | `play` | the walk that asks a component and answers it from the file |

pub mod file;
pub mod play;
pub mod shown;

pub use file::WalkFile;
