//! `cargo xtask build`: the host, and every connector as a component, with no step for a person.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use weir_build::place::{Placed, package};
use weir_build::wasm_target;

use crate::cargo;

#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Leave the host as it is
    #[arg(long)]
    connectors_only: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !args.connectors_only {
        let binary = host()?;
        eprintln!("host        {}", binary.display());
    }
    for connector in connectors()? {
        let state = if connector.changed {
            ""
        } else {
            "  (unchanged)"
        };
        let size = connector.bytes.div_ceil(1024);
        eprintln!(
            "connector   {}  {size} KiB{state}",
            connector.path.display()
        );
    }
    Ok(())
}

/// Builds the host in release mode; where its binary is.
pub(crate) fn host() -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.current_dir(cargo::root()).args([
        "build",
        "--release",
        "--package",
        "weir",
        "--bin",
        "weir",
    ]);
    let name = format!("weir{}", std::env::consts::EXE_SUFFIX);
    cargo::build(command)?
        .into_iter()
        .flat_map(|artifact| artifact.files)
        .find(|file| file.file_name().is_some_and(|file| *file == *name))
        .context("cargo built no binary named weir")
}

/// Where the connectors are put.
pub(crate) fn directory() -> PathBuf {
    cargo::root().join("dist").join("connectors")
}

/// Builds all connectors into [`directory`], checks what they import, and leaves files alone that would not change.
pub(crate) fn connectors() -> anyhow::Result<Vec<Placed>> {
    let mut command = wasm_target::cargo()?;
    command
        .current_dir(cargo::root().join("connectors"))
        .args([
            "build",
            "--release",
            "--workspace",
            "--lib",
            "--target",
            wasm_target::TARGET,
        ])
        .arg("--target-dir")
        .arg(cargo::target_dir().join("connectors"));
    let mut built = Vec::new();
    for artifact in cargo::build(command)? {
        for file in artifact
            .files
            .iter()
            .filter(|file| file.extension().is_some_and(|ending| ending == "wasm"))
        {
            let connector = package(&artifact.package, file, &directory()).with_context(|| {
                format!(
                    "connector {}, built as {}",
                    artifact.package,
                    file.display()
                )
            })?;
            built.push(connector);
        }
    }
    if built.is_empty() {
        bail!("cargo built no connector: is there a crate of type cdylib in connectors/?");
    }
    built.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(built)
}

/// Builds the connector `rest` with its planted fault into another directory.
pub(crate) fn planted_rest(directory: &Path) -> anyhow::Result<()> {
    let mut command = wasm_target::cargo()?;
    command
        .current_dir(cargo::root().join("connectors"))
        .args(["build", "--release", "--package", "rest", "--lib"])
        .args(["--features", "planted", "--target", wasm_target::TARGET])
        .arg("--target-dir")
        .arg(cargo::target_dir().join("connectors"));
    let module = cargo::build(command)?
        .into_iter()
        .filter(|artifact| artifact.package == "rest")
        .flat_map(|artifact| artifact.files)
        .find(|file| file.extension().is_some_and(|ending| ending == "wasm"))
        .context("cargo built no rest.wasm")?;
    package("rest", &module, directory)?;
    Ok(())
}
