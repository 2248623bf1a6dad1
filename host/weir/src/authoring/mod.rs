//! Writing connectors: from an empty directory to a component whose recorded answers are understood.
//!
//! None of it needs a host, a store or the network, `record` aside.
//!
//! | part | job |
//! | --- | --- |
//! | `project` | a connector's directory: its language, its name, where its component goes |
//! | `new` | a directory that begins with a working example |
//! | `build` | from sources to a component that loads |
//! | `cache` | where compiled components are kept from one time to the next |
//! | `walk` | recorded exchanges as files, and the walk that plays them through a component |
//! | `test` | is every walk as recorded, and what else must hold of any connector |
//! | `redact` | what of an exchange is not written down |
//! | `layout` | JSON laid out for people, nothing of it changed |

pub mod build;
pub mod cache;
pub mod layout;
pub mod new;
pub mod project;
pub mod redact;
pub mod test;
pub mod walk;

/// `1 record`, `3 records`
pub(crate) fn count(number: usize, what: &str) -> String {
    crate::verbs::text::count(number as u64, what)
}
