//! `cargo xtask test`: everything that must hold before a change is good, cheapest first.
//!
//! The steps share one target directory and one profile, so that nothing is built twice. The first step that fails
//! ends it; the tests come last, so that their runner's own count is the last word.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use weir_build::tool;

use crate::{build, cargo, docs, policy};

/// Where the property tests begin to look.
const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";
const SEED: &str = "20310304";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out formatting and lints
    #[arg(long)]
    tests_only: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !args.tests_only {
        step("format", || host(&["fmt", "--all", "--check"]))?;
        step("format of the connectors", || {
            guests(&["fmt", "--all", "--check"])
        })?;
    }
    step("licences and sources of all crates", policy::check)?;
    step("connectors: build, exports, imports", || {
        for connector in build::connectors()? {
            println!(
                "  {} imports no function but the log's",
                connector.path.display()
            );
        }
        Ok(())
    })?;
    step("pages of the connectors", || {
        docs::run(&docs::Args { check: true })
    })?;
    if !args.tests_only {
        step("lints", || {
            host(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
        })?;
        step("lints of the connectors", || {
            guests(&[
                "clippy",
                "--workspace",
                "--all-targets",
                // Code that only `planted` runs must compile too; it takes nothing away.
                "--features",
                "rest/planted",
                "--",
                "-D",
                "warnings",
            ])
        })?;
    }
    step("tests of the connectors", || {
        guests(&["test", "--workspace"])
    })?;
    step("connectors in other languages", || {
        other_languages();
        Ok(())
    })?;
    step("documentation of the SDK", || {
        let mut doc = guests_cargo(&["doc", "--package", "weir-sdk", "--no-deps"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        execute(doc)
    })?;
    step("examples in the documentation", || {
        host(&["test", "--workspace", "--doc"])
    })?;
    step("tests", || {
        if has_nextest() {
            host(&["nextest", "run", "--workspace", "--no-fail-fast"])
        } else {
            host(&[
                "test",
                "--workspace",
                "--lib",
                "--bins",
                "--tests",
                "--no-fail-fast",
            ])
        }
    })
}

/// Says which of them the tests will build: toolchains that are not there are no failure, and no secret either.
fn other_languages() {
    let examples = cargo::root().join("connectors/examples");
    let languages = [
        (
            "typescript",
            tool::NODE,
            &["tsc"][..],
            "npm install typescript",
        ),
        (
            "hackernews-js",
            tool::NODE,
            &["esbuild", "componentize-qjs"][..],
            "npm install",
        ),
        (
            "mediawiki-python",
            tool::VENV,
            &["componentize-py"][..],
            "pip install componentize-py",
        ),
    ];
    for (example, inside, programs, install) in languages {
        // A connector in TypeScript is made by the tests; they look where the example in JavaScript has its tools.
        let place = if example == "typescript" {
            "hackernews-js"
        } else {
            example
        };
        let dir = examples.join(place);
        let missing: Vec<&str> = programs
            .iter()
            .copied()
            .filter(|program| tool::find(&dir, inside, program).is_none())
            .collect();
        if missing.is_empty() {
            println!("  {example} is built and tested");
        } else {
            println!(
                "  SKIPPED: {example}: there is no {} here ({install})",
                missing.join(", no ")
            );
        }
    }
}

fn step(name: &str, run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("== {name}");
    let began = Instant::now();
    run().with_context(|| format!("step failed: {name}"))?;
    println!("== {name}: good after {} s", began.elapsed().as_secs());
    Ok(())
}

/// Runs cargo on the host's workspace.
fn host(args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.current_dir(cargo::root()).args(args);
    execute(command)
}

/// Runs cargo on the connectors' workspace, natively.
fn guests(args: &[&str]) -> anyhow::Result<()> {
    execute(guests_cargo(args))
}

/// The SDK is one of their dependencies: there it is looked at with what they need of it, which is built already.
fn guests_cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(cargo::root().join("connectors"))
        .args(args)
        .env("CARGO_TARGET_DIR", cargo::target_dir().join("connectors"));
    command
}

fn execute(mut command: Command) -> anyhow::Result<()> {
    // Tests that need a connector say so when there is none; they never pass without.
    command.env("WEIR_CONNECTORS", build::directory());
    // The same commit gives the same outcome; another seed looks elsewhere.
    if std::env::var_os(SEED_VARIABLE).is_none() {
        command.env(SEED_VARIABLE, SEED);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

fn has_nextest() -> bool {
    let mut command = Command::new("cargo");
    command.args(["nextest", "--version"]);
    command.output().is_ok_and(|output| output.status.success())
}
