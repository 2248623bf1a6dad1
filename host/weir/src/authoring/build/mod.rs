//! From a connector's sources to a component that loads.
//!
//! | file | job |
//! | --- | --- |
//! | `rust` | cargo, for wasm32-unknown-unknown |
//! | `javascript` | esbuild, then componentize-qjs |
//! | `python` | componentize-py |
//! | `tool` | runs what is not ours |
//! | `unchanged` | whether a component would be made of the very same things again |

mod javascript;
mod python;
mod rust;
mod tool;
mod unchanged;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_build::BuildError;
use weir_build::place::Placed;
use weir_runtime::{Connector, Limits, LoadError, Runtime, RuntimeConfig, RuntimeError};

use super::project::{Language, Project};

/// Why there is no connector to test.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The component does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The wasm engine.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The component cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Builds a connector's component into its `dist` directory. What the tools have to say goes to stderr.
///
/// # Errors
/// [`BuildError`]: a tool is missing (the text says which to install) or has failed.
pub fn build(project: &Project) -> Result<Placed, BuildError> {
    match project.language {
        Language::Rust => rust::build(project),
        Language::Js | Language::Ts => javascript::build(project),
        Language::Python => python::build(project),
    }
}

/// A runtime for one connector: calls run on the thread that makes them, and what it compiles is kept.
///
/// # Errors
/// [`RuntimeError`].
pub fn runtime() -> Result<Arc<Runtime>, RuntimeError> {
    runtime_in(super::cache::dir())
}

/// The same with another place for what it compiles, or none.
///
/// # Errors
/// [`RuntimeError`].
pub fn runtime_in(cache: Option<PathBuf>) -> Result<Arc<Runtime>, RuntimeError> {
    Runtime::new(RuntimeConfig {
        cache_dir: cache,
        workers: 1,
        inline: true,
        kept: false,
        limits: Limits::default(),
        ..RuntimeConfig::default()
    })
}

/// Loads a component as a host would.
///
/// # Errors
/// [`MakeError`]: it cannot be read, or is no connector; the text is for its author.
pub fn load(runtime: &Runtime, path: &Path) -> Result<Arc<Connector>, MakeError> {
    let bytes = fs::read(path).map_err(|source| MakeError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(runtime.load(path, &bytes)?)
}
