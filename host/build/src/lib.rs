//! Makes the components of connectors: for `weir build`, and for the connectors of this repository.
//!
//! | file | job |
//! | --- | --- |
//! | `wasm_target` | a cargo that builds guests, or what to install for one |
//! | `artifact` | runs it, and says what came out |
//! | `component` | from a core module to a component, and what a component may ask for |
//! | `place` | puts it where it is looked for |
//! | `tool` | finds the programs of other languages |

pub mod artifact;
pub mod component;
mod error;
pub mod place;
pub mod tool;
pub mod wasm_target;

pub use error::BuildError;
