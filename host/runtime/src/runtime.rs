//! The runtime: one engine, its cache and its workers, and the way from a file to a connector.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::cache::{Cache, CacheStats};
use crate::connector::{Connector, Digest};
use crate::contract::SUPPORTED_VERSIONS;
use crate::engine;
use crate::error::RuntimeError;
use crate::limits::{Limits, MESSAGE};
use crate::load::{Form, LoadError, Refusal, check_world, encode, inspect};
use crate::text::tame;
use crate::workers::Workers;

/// How to set up a [`Runtime`].
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {
    /// Where compiled connectors are kept: a directory of its own, made if missing, that only this user can
    /// enter. `None`: compile at every start.
    pub cache_dir: Option<PathBuf>,
    /// How many calls run at once; as many as the machine has processors. At least 1.
    pub workers: usize,
    /// Calls run on the thread that makes them instead of on workers: for a simulation. `workers` is then how many
    /// such threads there are.
    pub inline: bool,
    /// Instances are kept from one call to the next, and compared with fresh ones in a sample: for a simulation.
    pub kept: bool,
    /// What every call and every file may use.
    pub limits: Limits,
    /// The same for single connectors, by name. Until a file has told its connector's name, its own name without the
    /// ending counts.
    pub limits_of: BTreeMap<String, Limits>,
}

/// Everything that runs connectors. A process has one.
#[derive(Debug)]
pub struct Runtime {
    engine: Engine,
    cache: Cache,
    workers: Workers,
    limits: Limits,
    limits_of: BTreeMap<String, Limits>,
    kept: bool,
    /// The compiler uses all processors by itself; several files at once would only take more memory.
    compiling: Mutex<()>,
}

impl Runtime {
    /// Starts the runtime: engine, clock and workers.
    ///
    /// # Errors
    ///
    /// A limit out of range, a cache directory that others can enter, a machine without threads or without
    /// WebAssembly.
    pub fn new(config: RuntimeConfig) -> Result<Arc<Self>, RuntimeError> {
        let limits = config.limits;
        limits.check().map_err(RuntimeError::Limit)?;
        for (name, limits) in &config.limits_of {
            let named = |wrong| RuntimeError::Limit(format!("connector {name}: {wrong}"));
            limits.check().map_err(named)?;
        }
        let workers = config.workers.max(1);
        let engine = engine::engine(workers, config.kept)
            .map_err(|error| RuntimeError::Engine(format!("{error:#}")))?;
        let cache = Cache::open(&engine, config.cache_dir)?;
        engine::start_ticking(&engine).map_err(RuntimeError::Thread)?;
        let workers = if config.inline {
            Workers::inline()
        } else {
            Workers::new(workers).map_err(RuntimeError::Thread)?
        };
        Ok(Arc::new(Runtime {
            engine,
            cache,
            workers,
            limits,
            limits_of: config.limits_of,
            kept: config.kept,
            compiling: Mutex::new(()),
        }))
    }

    /// The threads on which calls belong.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// What the connector in that file may use, as far as the file's name tells.
    pub fn limits_for(&self, file: &Path) -> &Limits {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy());
        stem.and_then(|stem| self.limits_of.get(&*stem))
            .unwrap_or(&self.limits)
    }

    /// What the compile cache has done so far.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Makes a connector of the bytes of a file: a component, or a core module with the contract embedded.
    ///
    /// Takes well under a millisecond if the connector is in the compile cache, and some 50 to 200 ms of all
    /// processors if not: call it on a [worker](Runtime::workers). `label` is only for messages.
    ///
    /// # Errors
    ///
    /// See [`Refusal`].
    pub fn load(&self, label: &Path, bytes: &[u8]) -> Result<Arc<Connector>, LoadError> {
        self.try_load(label, bytes)
            .map(Arc::new)
            .map_err(|refusal| LoadError {
                file: label.to_owned(),
                refusal,
            })
    }

    fn try_load(&self, label: &Path, bytes: &[u8]) -> Result<Connector, Refusal> {
        let limits = *self.limits_for(label);
        if bytes.len() > limits.file {
            return Err(Refusal::TooLarge {
                bytes: bytes.len(),
                allowed: limits.file,
            });
        }
        let digest = Digest::of(bytes);
        // Only what has passed the gates below is ever kept.
        let component = match self.cache.get(&self.engine, &digest) {
            Some(component) => component,
            None => self.compile(bytes, &digest, limits.file)?,
        };
        let version = version_of(&self.engine, &component)?;
        let mut connector = Connector::new(&component, version, digest, label, limits, self.kept)?;
        if let Some(named) = self.limits_of.get(connector.name()) {
            connector.limit(*named);
        }
        Ok(connector)
    }

    fn compile(&self, bytes: &[u8], digest: &Digest, longest: usize) -> Result<Component, Refusal> {
        let form = inspect(bytes, longest)?;
        let encoded;
        let component = match form {
            Form::Component { imports, exports } => {
                check_world(&imports, &exports)?;
                bytes
            }
            Form::Module => {
                encoded = encode(bytes)?;
                if let Form::Component { imports, exports } = inspect(&encoded, usize::MAX)? {
                    check_world(&imports, &exports)?;
                }
                &encoded
            }
        };
        let _one = self
            .compiling
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A file is foreign: what it makes of the compiler must not end more than the file.
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            Component::from_binary(&self.engine, component)
        }));
        let component = compiled
            .map_err(|_| Refusal::NotCompilable("the compiler gave up on it".to_owned()))?
            .map_err(|error| Refusal::NotCompilable(tame(&format!("{error:#}"), MESSAGE)))?;
        self.cache.put(digest, &component);
        Ok(component)
    }
}

/// The version of the contract that a compiled component is for.
fn version_of(engine: &Engine, component: &Component) -> Result<&'static str, Refusal> {
    let names: Vec<String> = component
        .component_type()
        .exports(engine)
        .map(|(name, _)| name.to_owned())
        .collect();
    SUPPORTED_VERSIONS
        .iter()
        .find(|version| {
            names
                .iter()
                .any(|name| name.strip_prefix("weir:connector/connector@") == Some(**version))
        })
        .copied()
        .ok_or(Refusal::OtherWorld { exports: names })
}
