//! Connectors in Python: componentize-py makes a component with CPython in it.

use std::process::Command;

use weir_build::BuildError;
use weir_build::place::Placed;
use weir_build::tool::{VENV, find};

use super::tool;
use super::unchanged::Inputs;
use crate::authoring::project::Project;

const INSTALL: &str = "connectors in Python are built with componentize-py, which runs on Python 3.10 or newer.\n\
    Install it once, then run this command again:\n\
    \x20 pip install componentize-py                                        (in an environment that is active)\n\
    \x20 python3 -m venv .venv && .venv/bin/pip install componentize-py    (in the connector's directory)";

pub(super) fn build(project: &Project) -> Result<Placed, BuildError> {
    let Some(componentize) = find(&project.dir, VENV, "componentize-py") else {
        return Err(BuildError::Missing(format!(
            "there is no componentize-py here: {INSTALL}"
        )));
    };
    tool::entry(project, &["src/app.py"])?;
    let work = tool::work(project)?;
    let made = work.join("made.wasm");
    let wit = tool::wit(project, &work)?;
    let inputs = [
        project.dir.join("src"),
        project.dir.join(".weir/python"),
        wit.clone(),
    ];
    let inputs = Inputs::of(&inputs, &[&componentize]);
    if let Some(placed) = inputs.standing(project, &work) {
        return Ok(placed);
    }
    let mut command = Command::new(componentize);
    command
        .arg("--quiet")
        .arg("--wit-path")
        .arg(wit)
        .args(["--world", "plugin", "componentize"])
        // Nothing from outside: a connector is a pure function.
        .args(["--stub-wasi", "--python-path", "src"])
        .args(["--python-path", ".weir/python", "app", "--output"])
        .arg(&made);
    tool::run(project, command)?;
    let placed = tool::place(project, &made)?;
    inputs.note(&placed, &work);
    Ok(placed)
}
