//! Runs what is not ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_build::place::{Placed, put};
use weir_build::{BuildError, component};

use crate::authoring::new::contract;
use crate::authoring::project::Project;

/// Runs it in the project's directory; what it has to say goes to stderr.
pub(super) fn run(project: &Project, mut command: Command) -> Result<(), BuildError> {
    // stdout is for the answer of the verb.
    command.stdout(Stdio::null());
    finish(project, command)
}

/// The same for one that has what matters to say on its stdout.
pub(super) fn run_aloud(project: &Project, mut command: Command) -> Result<(), BuildError> {
    command.stdout(std::io::stderr());
    finish(project, command)
}

fn finish(project: &Project, mut command: Command) -> Result<(), BuildError> {
    command.current_dir(&project.dir).stdin(Stdio::null());
    let program = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(BuildError::Failed {
            program,
            status: status.to_string(),
        }),
        Err(source) => Err(BuildError::Start { program, source }),
    }
}

/// The directory of the contract: the project's own, else this weir's, written into the work directory.
pub(super) fn wit(project: &Project, work: &Path) -> Result<PathBuf, BuildError> {
    let own = project.dir.join(".weir/wit");
    if own.is_dir() {
        return absolute(&own);
    }
    let dir = work.join("wit");
    for (file, text) in contract() {
        let path = dir.join(file);
        write(&path, text)?;
    }
    absolute(&dir)
}

/// Where what lies between is put; made if missing.
pub(super) fn work(project: &Project) -> Result<PathBuf, BuildError> {
    let dir = project.dist().join(".build");
    fs::create_dir_all(&dir).map_err(|source| BuildError::File {
        path: dir.clone(),
        source,
    })?;
    absolute(&dir)
}

/// Checks a component, and puts it in its place.
pub(super) fn place(project: &Project, made: &Path) -> Result<Placed, BuildError> {
    let wasm = fs::read(made).map_err(|source| BuildError::File {
        path: made.to_owned(),
        source,
    })?;
    component::check_exports(&wasm)?;
    component::check_imports(&wasm)?;
    put(&project.name, &wasm, &project.dist())
}

/// The first of these files that is there.
pub(super) fn entry(project: &Project, names: &[&str]) -> Result<PathBuf, BuildError> {
    let found = names
        .iter()
        .map(|name| project.dir.join(name))
        .find(|path| path.is_file());
    match found {
        Some(path) => absolute(&path),
        None => Err(BuildError::Missing(format!(
            "{} has none of {}: that is where a connector begins",
            project.dir.display(),
            names.join(", ")
        ))),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    fs::canonicalize(path).map_err(|source| BuildError::File {
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, text: &str) -> Result<(), BuildError> {
    let failed = |source| BuildError::File {
        path: path.to_owned(),
        source,
    };
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}
