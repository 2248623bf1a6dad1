//! The built connectors, loaded as the host loads them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use weir_runtime::{Connector, Runtime, RuntimeConfig};

use crate::build;

/// Builds all connectors and loads them, in the order of their names.
pub(crate) fn load() -> anyhow::Result<Vec<Arc<Connector>>> {
    build::connectors()?;
    from(&build::directory(), |_| true)
}

/// One that was built before: where `WEIR_CONNECTORS` says, as the tests of the host find it.
#[cfg(test)]
pub(crate) fn load_built(name: &str) -> anyhow::Result<Vec<Arc<Connector>>> {
    let directory = std::env::var_os("WEIR_CONNECTORS").map_or_else(build::directory, Into::into);
    from(&directory, |stem| stem == name)
}

fn from(directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> anyhow::Result<Vec<Arc<Connector>>> {
    let runtime = Runtime::new(RuntimeConfig {
        inline: true,
        ..RuntimeConfig::default()
    })?;
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)
        .with_context(|| format!("no connectors in {}", directory.display()))?
    {
        let path = entry?.path();
        let is_wasm = path.extension().is_some_and(|ending| ending == "wasm");
        if is_wasm && path.file_stem().is_some_and(&wanted) {
            files.push(path);
        }
    }
    files.sort();
    files
        .iter()
        .map(|file| {
            let bytes =
                fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            Ok(runtime.load(file, &bytes)?)
        })
        .collect()
}
