//! `cargo xtask soak` and `cargo xtask planted`: the simulation over many seeds, and whether it finds what is broken on
//! purpose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{build, cargo};

#[derive(clap::Args)]
pub(crate) struct SoakArgs {
    /// End after so many minutes
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Begin with this seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Not this seed nor any after it
    #[arg(long)]
    to: Option<u64>,
    /// Seeds tried at once; each keeps a core busy
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Seeds with few records, as `cargo xtask test` tries them
    #[arg(long)]
    brief: bool,
}

/// As many seeds as fit. Fails with the first promise that is broken, told by the shortest history.
pub(crate) fn soak(args: &SoakArgs) -> anyhow::Result<()> {
    build::connectors()?;
    let program = program(&[])?;
    let again = if args.brief {
        "cargo xtask soak --brief"
    } else {
        "cargo xtask soak"
    };
    let mut command = Command::new(&program);
    command
        .arg("--connectors")
        .arg(build::directory())
        .arg("--cache")
        .arg(cache())
        .args(["--from", &args.from.to_string()])
        .args(["--minutes", &args.minutes.to_string()])
        .args(["--threads", &args.threads.to_string()])
        .args(["--again", again]);
    if args.brief {
        command.arg("--brief");
    }
    if let Some(to) = args.to {
        command.args(["--to", &to.to_string()]);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !status.success() {
        bail!("the soak ended with {status}");
    }
    Ok(())
}

#[derive(clap::Args)]
pub(crate) struct PlantedArgs {
    /// Seeds within which each fault is to be found
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// Only this fault; `none` for the whole product
    #[arg(long)]
    only: Option<String>,
    /// Runs that may be made to shorten the history that shows a fault, about a second each; 0: none is told
    #[arg(long, default_value_t = 40)]
    tries: u32,
}

/// The faults: the word for each, and what is broken.
const FAULTS: [(&str, &str); 10] = [
    ("keyset", "pages by `time >` instead of (time, id)"),
    ("early-watermark", "the watermark moves with each page"),
    ("cursor-first", "the next step is stored before the records"),
    ("no-overlap", "windows begin at the watermark"),
    ("dedup-by-id", "records are told apart by id alone"),
    ("short-wait", "half of a vendor's wait is enough"),
    ("early-validator", "validators are stored before their page"),
    ("lost-gap", "gaps are not listed"),
    ("early-close", "a walk that was cut short closes its gap"),
    ("loose-settle", "a second look reads half of what is due"),
];

/// The last events of a history that are printed.
const EVENTS_TOLD: &str = "12";

/// Breaks one rule after the other and looks whether the simulation finds it; the product as it is must break nothing.
pub(crate) fn planted(args: &PlantedArgs) -> anyhow::Result<()> {
    build::connectors()?;
    let broken = planted_connectors()?;
    let program = program(&["--features", "planted"])?;
    let mut wrong = 0;
    for (name, what) in FAULTS {
        if args.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let (connectors, plant) = if name == "keyset" {
            (broken.clone(), None)
        } else {
            (build::directory(), Some(name))
        };
        let told = hunt(&program, &connectors, plant, args)?;
        match told.found.first() {
            Some(found) => {
                println!(
                    "{name:<16} {what}: found at seed {} by \"{}\"",
                    found.seed, found.promise
                );
                if args.tries > 0 {
                    told.history.iter().for_each(|line| println!("    {line}"));
                }
            }
            None => {
                wrong += 1;
                println!("{name:<16} {what}: NOT FOUND in {} seeds", args.seeds);
            }
        }
    }
    if args.only.as_deref().is_none_or(|only| only == "none") {
        let whole = hunt(&program, &build::directory(), None, args)?;
        match whole.found.first() {
            None => println!("{:<16} nothing found in {} seeds", "as it is", whole.seeds),
            Some(found) => {
                wrong += 1;
                println!(
                    "{:<16} seed {} breaks \"{}\": {}\n                 cargo xtask soak --from {} --to {} tells more",
                    "as it is",
                    found.seed,
                    found.promise,
                    found.what,
                    found.seed,
                    found.seed + 1
                );
            }
        }
    }
    if wrong > 0 {
        bail!("{wrong} of these are not as they should be");
    }
    Ok(())
}

/// What the program says on its last line.
#[derive(Deserialize)]
struct Told {
    seeds: u64,
    found: Vec<Broken>,
    /// The shortest history that shows the first of them, line by line.
    #[serde(skip)]
    history: Vec<String>,
}

#[derive(Deserialize)]
struct Broken {
    seed: u64,
    promise: String,
    what: String,
}

fn hunt(
    program: &Path,
    connectors: &Path,
    plant: Option<&str>,
    args: &PlantedArgs,
) -> anyhow::Result<Told> {
    let mut command = Command::new(program);
    command
        .arg("--connectors")
        .arg(connectors)
        .arg("--cache")
        .arg(cache())
        .args(["--to", &args.seeds.to_string()])
        .args(["--tries", &args.tries.to_string()])
        .args(["--events", EVENTS_TOLD, "--json"])
        .stdout(Stdio::piped());
    if let Some(plant) = plant {
        command.args(["--plant", plant]);
    }
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    let mut told: Told = serde_json::from_str(last).with_context(|| {
        format!(
            "{} said {last:?}; {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    // What follows says how to see it again, which takes the fault.
    let history = text.lines().take_while(|line| !line.starts_with("again:"));
    told.history = history.map(str::to_owned).collect();
    Ok(told)
}

/// Where compiled connectors are kept from one run to the next.
fn cache() -> PathBuf {
    cargo::target_dir().join("simulation")
}

/// Builds the program that runs seeds.
fn program(features: &[&str]) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command
        .current_dir(cargo::root())
        .args([
            "build",
            "--release",
            "--package",
            "weir",
            "--example",
            "soak",
        ])
        .args(features);
    let name = format!("soak{}", std::env::consts::EXE_SUFFIX);
    cargo::build(command)?
        .into_iter()
        .flat_map(|artifact| artifact.files)
        .find(|file| file.file_name().is_some_and(|file| *file == *name))
        .context("cargo built no program named soak")
}

/// The connector `rest` with its fault, in a directory of its own.
fn planted_connectors() -> anyhow::Result<PathBuf> {
    let directory = build::directory().with_file_name("planted");
    fs::create_dir_all(&directory)?;
    build::planted_rest(&directory)?;
    Ok(directory)
}
