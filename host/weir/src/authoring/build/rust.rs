//! Connectors in Rust.

use std::fs;

use weir_build::place::{Placed, package};
use weir_build::{BuildError, artifact, wasm_target};

use crate::authoring::project::Project;

pub(super) fn build(project: &Project) -> Result<Placed, BuildError> {
    let manifest = project.dir.join("Cargo.toml");
    let mut cargo = wasm_target::cargo()?;
    // The directory's own .cargo/config.toml counts, wherever weir was started.
    cargo.current_dir(&project.dir).args([
        "build",
        "--release",
        "--lib",
        "--target",
        wasm_target::TARGET,
    ]);
    let manifest = fs::canonicalize(&manifest).map_err(|source| BuildError::File {
        path: manifest.clone(),
        source,
    })?;
    let module = artifact::build(cargo)?
        .into_iter()
        .filter(|artifact| artifact.manifest == manifest)
        .find_map(|artifact| artifact.wasm().map(ToOwned::to_owned));
    match module {
        Some(module) => package(&project.name, &module, &project.dist()),
        None => Err(BuildError::Missing(format!(
            "cargo built no module of {}: its Cargo.toml needs [lib] crate-type = [\"cdylib\"]",
            project.name
        ))),
    }
}
