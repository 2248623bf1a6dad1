//! `weir simulate`

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use weir_tests::spec::{FaultPlan, VendorSpec};

use super::output::Progress;
use super::{CliError, Common, setting};
use crate::authoring::build::{self, MakeError};
use crate::authoring::cache;
use crate::authoring::project::Project;
use crate::config::Config;
use crate::control::Said;
use crate::simulate::{
    Base, Came, HuntError, Machine, Nobody, START, Setup, Source, TRIES, Violation, hunt, run,
};
use crate::store::UnitRow;

const DAY: f64 = 86_400_000.0;

/// What lies in a connector's directory: how it is polled, and what its vendor is like.
const CONFIG: &str = "weir.toml";
const VENDOR: &str = "vendor.toml";

/// `weir simulate`
#[derive(Debug, Args)]
#[command(after_help = "Examples: weir simulate acme-orders --days 7\n\
    \x20         weir simulate --config tests/vendors/weir.toml --days 30 --seeds 1..3 \\\n\
    \x20           --vendor tests/vendors/shop.toml --vendor tests/vendors/desk.toml\n\
    A connector's directory is built, and run with the weir.toml and the vendor.toml in it. The real scheduler, poll path \
    and connector run against simulated vendors, in memory, under a virtual clock. The same seed always gives the same \
    history. Nothing of [host] is touched, nobody is called, and no secret is looked up: each is the text `simulated`. A \
    call goes to the vendor whose `base` the path of the connection's URL begins with. A vendor without a `base` gets all \
    calls.\n\
    Ends with 1 when a promise was not kept, and says which and how to see it again; also when there was nothing to keep \
    it for, since some unit was never read or no record came.")]
pub struct Simulate {
    /// A connector's directory, with weir.toml and vendor.toml in it [default: ., where that is one]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// This connector: a .wasm file, or a name in the connectors' directory [default: DIR's, else all that are there]
    #[arg(long, value_name = "FILE|NAME")]
    connector: Option<PathBuf>,
    /// What a vendor is like, in TOML; several may be given [default: vendor.toml in DIR]
    #[arg(long, value_name = "FILE")]
    vendor: Vec<PathBuf>,
    /// How many days pass
    #[arg(long, value_name = "D", default_value = "1", value_parser = days)]
    days: u64,
    /// Which runs: from A to B, both included, or one number
    #[arg(long, value_name = "A..B", default_value = "1..10", value_parser = seeds)]
    seeds: Seeds,
    /// Only this connection [default: all]
    #[arg(long, value_name = "NAME")]
    connection: Option<String>,
    /// Nothing goes wrong, and nobody checks: how fast the host itself is
    #[arg(long)]
    calm: bool,
}

/// Seeds from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seeds {
    first: u64,
    last: u64,
}

fn seeds(text: &str) -> Result<Seeds, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| {
        text.parse()
            .map_err(|_| "write two numbers such as 1..20, or one".to_owned())
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!("{first} comes after {last}: write {last}..{first}"));
    }
    Ok(Seeds { first, last })
}

/// Days, as milliseconds.
fn days(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(days) if days > 0.0 && days <= 36_500.0 => Ok((days * DAY) as u64),
        _ => Err("write a number of days, such as 30 or 0.5".to_owned()),
    }
}

/// What all seeds came to.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    seeds: u64,
    /// Promises were checked.
    checked: bool,
    /// Simulated time, all seeds together.
    days: f64,
    polls: u64,
    calls: u64,
    commits: u64,
    delivered: u64,
    /// Processes that were started.
    boots: u64,
    /// Of this machine.
    seconds: f64,
    polls_per_second: f64,
    violation: Option<Found>,
    /// Units of a seed that kept every promise, of which nothing was ever read: then it has shown nothing.
    unread: Vec<Unread>,
}

/// A unit of which no walk went well.
#[derive(Debug, Serialize)]
struct Unread {
    seed: u64,
    unit: String,
    /// How its last poll ended.
    outcome: String,
    message: Option<String>,
}

impl Unread {
    fn of(unit: &UnitRow, seed: u64) -> Option<Unread> {
        let state = &unit.state;
        let last = state.last.as_ref();
        let outcome = last.map_or("never polled", |last| &last.outcome);
        // A vendor that never gives all of its list has been read as far as it goes.
        if state.synced || matches!(outcome, "ok" | "not-modified" | "truncated") {
            return None;
        }
        Some(Unread {
            seed,
            unit: unit.key.to_string(),
            outcome: outcome.to_owned(),
            message: last.and_then(|last| last.message.clone()),
        })
    }
}

/// A promise that was not kept.
#[derive(Debug, Serialize)]
struct Found {
    seed: u64,
    #[serde(flatten)]
    violation: Violation,
    /// The shortest way there that was found, for people.
    history: String,
}

impl Simulate {
    pub(super) async fn run(mut self, common: &Common) -> Result<u8, CliError> {
        let common = self.placed(common)?;
        // Seconds of computing on a thread of its own, with the stack that wasm needs.
        let thread = std::thread::Builder::new()
            .name("simulation".into())
            .stack_size(8 << 20)
            .spawn(move || self.simulate(&common));
        let failed = |source| CliError::Io {
            what: "the simulation could not run",
            source,
        };
        let thread = thread.map_err(failed)?;
        let ended = tokio::task::spawn_blocking(move || thread.join()).await;
        match ended {
            Ok(Ok(outcome)) => outcome,
            _ => Err(failed(std::io::Error::other("it broke down"))),
        }
    }

    fn simulate(self, common: &Common) -> Result<u8, CliError> {
        let setup = self.setup(common)?;
        let source = Source::Over(Box::new(Base {
            config: setup.config.clone(),
            vendors: setup.vendors.clone(),
            length: i64::try_from(setup.length).unwrap_or(i64::MAX),
        }));
        let mut outcome = Outcome {
            checked: !self.calm,
            ..Outcome::default()
        };
        let mut progress = Progress::new();
        let began = Instant::now();
        for seed in self.seeds.first..=self.seeds.last {
            progress.show(&Said::Passing(format!(
                "seed {seed} of {}..{}: {} polls so far, {:.0} a second",
                self.seeds.first,
                self.seeds.last,
                outcome.polls,
                rate(outcome.polls, began.elapsed())
            )));
            outcome.seeds += 1;
            outcome.days += setup.length as f64 / DAY;
            let came = if self.calm {
                run(&setup, &[], seed, Arc::new(Mutex::new(Nobody)))
                    .map(|finished| Came::Clean(Box::new(finished)))
                    .map_err(HuntError::Run)
            } else {
                hunt(&source, seed, &setup.machine, TRIES)
            };
            match came {
                Ok(Came::Clean(finished)) => {
                    outcome.polls += finished.polls;
                    outcome.calls += finished.calls;
                    outcome.commits += finished.commits;
                    outcome.delivered += finished.delivered;
                    outcome.boots += u64::from(finished.boots);
                    let unread = finished.units.iter();
                    outcome.unread = unread.filter_map(|unit| Unread::of(unit, seed)).collect();
                    if outcome.checked && !outcome.unread.is_empty() {
                        break;
                    }
                }
                Ok(Came::Broken(found)) => {
                    outcome.violation = Some(Found {
                        seed,
                        history: found.to_string(),
                        violation: found.violation,
                    });
                    break;
                }
                Err(HuntError::Run(error)) => {
                    progress.end();
                    return Err(error.into());
                }
                Err(HuntError::Config(error)) => {
                    progress.end();
                    return Err(CliError::Simulation(error.to_string()));
                }
            }
        }
        progress.end();
        outcome.seconds = began.elapsed().as_secs_f64();
        outcome.polls_per_second = rate(outcome.polls, began.elapsed());
        let shown = outcome.unread.is_empty() && outcome.delivered > 0;
        let exit = u8::from(outcome.violation.is_some() || outcome.checked && !shown);
        let text = if common.json {
            serde_json::to_string(&outcome).map_err(CliError::Foreign)? + "\n"
        } else {
            self.told(common, &outcome)
        };
        let written = std::io::stdout().write_all(text.as_bytes());
        match written {
            Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => Err(CliError::Io {
                what: "the answer could not be printed",
                source,
            }),
            _ => Ok(exit),
        }
    }

    /// Where everything is: what is not named lies in the connector's directory.
    fn placed(&mut self, common: &Common) -> Result<Common, CliError> {
        let mut common = common.clone();
        // With another vendor, too, the connector that is meant is the one here, as its sources are now.
        let here = Path::new(VENDOR).is_file() && self.connector.is_none();
        if self.vendor.is_empty() || here {
            self.dir.get_or_insert_with(|| ".".into());
        }
        let Some(dir) = &self.dir else {
            return Ok(common);
        };
        if self.connector.is_none() {
            Project::open(dir)?;
        }
        if common.config == Path::new(CONFIG) {
            common.config = dir.join(CONFIG);
        }
        if self.vendor.is_empty() {
            let file = dir.join(VENDOR);
            if !file.is_file() {
                return Err(CliError::Simulation(format!(
                    "there is no {}: it says what the vendor is like, and `weir new NAME` makes one to begin with; or name \
                     one with --vendor",
                    file.display()
                )));
            }
            self.vendor.push(file);
        }
        Ok(common)
    }

    fn setup(&self, common: &Common) -> Result<Setup, CliError> {
        let mut config = setting::load_simulated(common)?;
        let mut vendors = Vec::new();
        for file in &self.vendor {
            let wrong = |what: &dyn std::fmt::Display| {
                CliError::Simulation(format!("{}: {what}", file.display()))
            };
            let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
            let spec = VendorSpec::from_toml(&text).map_err(|error| wrong(&error))?;
            spec.check().map_err(|error| wrong(&error))?;
            let faults = if self.calm {
                FaultPlan::default()
            } else {
                spec.faults
            };
            vendors.push(VendorSpec { faults, ..spec });
        }
        if let Some(only) = &self.connection {
            config.connections.retain(|name, _| name == only);
            if config.connections.is_empty() {
                return Err(CliError::Simulation(format!(
                    "{}: there is no connection {only:?}",
                    common.config.display()
                )));
            }
        }
        let machine = self.machine(common, &mut config)?;
        Ok(Setup {
            config,
            machine,
            vendors,
            start: START,
            length: self.days,
        })
    }

    /// The connectors that are asked for. Connections of other ones are left out.
    fn machine(&self, common: &Common, config: &mut Config) -> Result<Machine, CliError> {
        let dir = config.host.connectors.clone();
        let built = match (&self.connector, &self.dir) {
            (None, Some(dir)) => Some(
                build::build(&Project::open(dir)?)
                    .map_err(MakeError::from)?
                    .path,
            ),
            _ => None,
        };
        let Some(asked) = self.connector.as_ref().or(built.as_ref()) else {
            return Ok(Machine::open(&dir, cache::dir(), 1)?);
        };
        let is_file = asked
            .extension()
            .is_some_and(|extension| extension == "wasm");
        let file = if is_file {
            asked.clone()
        } else {
            dir.join(asked).with_extension("wasm")
        };
        let machine = Machine::of(&file, cache::dir(), 1)?;
        let names = machine.catalogue().names();
        config
            .connections
            .retain(|_, connection| names.contains(&connection.connector));
        if config.connections.is_empty() {
            return Err(CliError::Simulation(format!(
                "{}: no connection there uses connector {}",
                common.config.display(),
                names.join(", ")
            )));
        }
        Ok(machine)
    }

    fn told(&self, common: &Common, outcome: &Outcome) -> String {
        let sums = format!(
            "{} seeds, {:.1} simulated days, {} polls, {} calls, {} deliveries, {} starts; {:.0} polls a second\n",
            outcome.seeds,
            outcome.days,
            outcome.polls,
            outcome.calls,
            outcome.delivered,
            outcome.boots,
            outcome.polls_per_second
        );
        match &outcome.violation {
            None if !outcome.checked => format!("nothing was checked: {sums}"),
            None if !outcome.unread.is_empty() => unread(outcome, &sums),
            None if outcome.delivered == 0 => format!(
                "nothing was shown: no record was delivered, since no vendor has any that are asked for\n{sums}"
            ),
            None => format!("every promise was kept: {sums}"),
            Some(Found { seed, history, .. }) => format!(
                "{history}\nto see it again: {}\n{sums}",
                self.again(&common.config, *seed)
            ),
        }
    }

    /// The command that runs a seed again.
    fn again(&self, config: &Path, seed: u64) -> String {
        let mut words = vec!["weir simulate".to_owned()];
        if let Some(dir) = &self.dir {
            words.push(dir.display().to_string());
        }
        if let Some(connector) = &self.connector {
            words.push(format!("--connector {}", connector.display()));
        }
        if let Some(connection) = &self.connection {
            words.push(format!("--connection {connection}"));
        }
        words.push(format!("--config {}", config.display()));
        for vendor in &self.vendor {
            words.push(format!("--vendor {}", vendor.display()));
        }
        words.push(format!("--days {} --seeds {seed}", self.days as f64 / DAY));
        words.join(" ")
    }
}

fn unread(outcome: &Outcome, sums: &str) -> String {
    let mut text = "nothing was shown of these, since nothing of them was read:\n".to_owned();
    for Unread {
        seed,
        unit,
        outcome,
        message,
    } in &outcome.unread
    {
        let message = message.as_deref().unwrap_or_default();
        text.push_str(&format!("  {unit}: {outcome} {message} (seed {seed})\n"));
    }
    text.push_str(
        "Do the collections in the vendor's file have the paths that the connector asks for (decoded: `/a b`, not `/a%20b`), \
         and is its `tokens` what the connection sends as a bearer token?\n",
    );
    text + sums
}

fn rate(polls: u64, took: Duration) -> f64 {
    polls as f64 / took.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_days_as_people_write_them() {
        let range = |first, last| Ok(Seeds { first, last });
        assert_eq!(seeds("1..20"), range(1, 20));
        assert_eq!(seeds("7"), range(7, 7));
        assert!(seeds("9..2").unwrap_err().contains("2..9"));
        assert!(seeds("a").is_err());
        assert_eq!(days("30"), Ok(2_592_000_000));
        assert_eq!(days("0.5"), Ok(43_200_000));
        assert!(days("0").is_err() && days("NaN").is_err());
    }
}
