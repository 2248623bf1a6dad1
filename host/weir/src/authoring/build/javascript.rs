//! Connectors in JavaScript and TypeScript: esbuild makes one file of them, componentize-qjs a component with QuickJS in it.

use std::process::Command;

use weir_build::BuildError;
use weir_build::place::Placed;
use weir_build::tool::{NODE, find};

use super::tool;
use super::unchanged::Inputs;
use crate::authoring::project::{Language, Project, TYPESCRIPT};

const INSTALL: &str = "connectors in JavaScript are built with esbuild and componentize-qjs, which run on Node.js 20 or newer.\n\
    Install them once, then run this command again:\n\
    \x20 Node.js   from nodejs.org, or apt install nodejs npm, dnf install nodejs, brew install node\n\
    \x20 the rest  npm install     (in the connector's directory: its package.json names both)\n\
    \x20           npm install --global esbuild componentize-qjs     (for all connectors)";

pub(super) fn build(project: &Project) -> Result<Placed, BuildError> {
    let program = |name: &str| {
        find(&project.dir, NODE, name)
            .ok_or_else(|| BuildError::Missing(format!("there is no {name} here: {INSTALL}")))
    };
    let (esbuild, componentize) = (program("esbuild")?, program("componentize-qjs")?);
    let entry = tool::entry(project, &[TYPESCRIPT, "src/main.js"])?;
    if project.language == Language::Ts {
        check_types(project)?;
    }
    let work = tool::work(project)?;
    let (bundle, made) = (work.join("bundle.js"), work.join("made.wasm"));

    let mut command = Command::new(esbuild);
    command
        .arg(entry)
        .args([
            "--bundle",
            "--format=esm",
            "--platform=neutral",
            "--external:weir:*",
        ])
        .args(["--charset=utf8", "--log-level=warning"])
        .arg(format!("--outfile={}", bundle.display()));
    tool::run(project, command)?;

    // Types, comments and files that are not used are gone from it.
    let wit = tool::wit(project, &work)?;
    let inputs = Inputs::of(&[bundle.clone(), wit.clone()], &[&componentize]);
    if let Some(placed) = inputs.standing(project, &work) {
        return Ok(placed);
    }
    let mut command = Command::new(componentize);
    command
        .arg("--wit")
        .arg(wit)
        .args(["--world", "plugin"])
        .arg("--js")
        .arg(&bundle)
        // Nothing from outside, and no waiting: a connector is a pure function.
        .args(["--stub-wasi", "--sync"])
        .arg("--output")
        .arg(&made);
    tool::run(project, command)?;
    let placed = tool::place(project, &made)?;
    inputs.note(&placed, &work);
    Ok(placed)
}

/// esbuild leaves types out without looking at them; where the compiler is, it looks.
fn check_types(project: &Project) -> Result<(), BuildError> {
    let Some(tsc) = find(&project.dir, NODE, "tsc") else {
        tracing::warn!("types were not checked: there is no tsc here; npm install typescript");
        return Ok(());
    };
    let mut command = Command::new(tsc);
    command.arg("--noEmit");
    if project.dir.join("tsconfig.json").is_file() {
        command.args(["--project", "."]);
    } else {
        command.args(["--strict", "--target", "es2022", "--module", "esnext"]);
        command.args([
            "--moduleResolution",
            "bundler",
            "--resolveJsonModule",
            TYPESCRIPT,
        ]);
    }
    tool::run_aloud(project, command)
}
