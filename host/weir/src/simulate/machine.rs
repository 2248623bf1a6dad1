//! What runs can share: the wasm engine and the connectors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_runtime::{Limits, Runtime, RuntimeConfig, RuntimeError};

use crate::catalogue::{Catalogue, CatalogueError};

/// Engine and connectors.
#[derive(Clone)]
pub struct Machine {
    pub(super) runtime: Arc<Runtime>,
    pub(super) catalogue: Arc<Catalogue>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The wasm engine.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The connectors' directory.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The connector's file.
    #[error("{}: {why}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why it does not load.
        why: String,
    },
}

impl Machine {
    /// Loads the connectors of a directory, for runs on up to so many threads at once. `cache`: where compiled ones are
    /// kept, if they are.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn open(
        connectors: &Path,
        cache: Option<PathBuf>,
        threads: usize,
    ) -> Result<Machine, MachineError> {
        let runtime = runtime(cache, threads)?;
        let catalogue = Arc::new(Catalogue::open(connectors, runtime.clone())?);
        Ok(Machine { runtime, catalogue })
    }

    /// Loads one connector. `cache`: where compiled ones are kept, if they are.
    ///
    /// # Errors
    /// [`MachineError`].
    pub fn of(
        file: &Path,
        cache: Option<PathBuf>,
        threads: usize,
    ) -> Result<Machine, MachineError> {
        let runtime = runtime(cache, threads)?;
        let catalogue = Catalogue::of(file, runtime.clone());
        let failed = catalogue.files().into_iter().find_map(|file| file.error);
        if let Some(why) = failed {
            return Err(MachineError::File {
                file: file.to_owned(),
                why,
            });
        }
        Ok(Machine {
            runtime,
            catalogue: Arc::new(catalogue),
        })
    }

    /// The connectors.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

fn runtime(cache: Option<PathBuf>, threads: usize) -> Result<Arc<Runtime>, RuntimeError> {
    Runtime::new(RuntimeConfig {
        cache_dir: cache,
        workers: threads,
        inline: true,
        kept: true,
        limits: Limits::default(),
        ..RuntimeConfig::default()
    })
}
