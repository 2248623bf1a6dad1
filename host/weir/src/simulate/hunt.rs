//! Seed after seed until a promise is broken, and what is told of it then.

use std::fmt;

use weir_tests::spec::VendorSpec;

use super::check::{happening, relative};
use super::plan::{Base, Plan};
use super::shrink::{Found, check, shrink};
use super::{Finished, Machine, RunError, What};
use crate::config::ConfigErrors;

/// Tries that shorten a history well enough, and take a minute or two.
pub const TRIES: u32 = 200;

/// The last events before a violation that are printed, unless the format asks for another width.
const EVENTS: usize = 60;

/// Where plans come from.
#[derive(Clone)]
pub enum Source {
    /// Everything follows from the seed.
    Seeds,
    /// The same with few records.
    Brief,
    /// What goes wrong follows from the seed; vendors and configuration are given.
    Over(Box<Base>),
}

impl Source {
    /// The plan of a seed.
    ///
    /// # Errors
    /// A seed made a configuration that is refused: a fault of weir.
    pub fn plan(&self, seed: u64) -> Result<Plan, ConfigErrors> {
        match self {
            Source::Seeds => Plan::of_seed(seed),
            Source::Brief => Plan::brief(seed),
            Source::Over(base) => Ok(Plan::over(base, seed)),
        }
    }
}

/// What a seed came to.
pub enum Came {
    /// All promises were kept.
    Clean(Box<Finished>),
    /// One was not.
    Broken(Box<Found>),
}

/// Why a seed could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum HuntError {
    /// Its configuration.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Its run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Tries one seed. A violation is told by the shortest history that so many tries find.
///
/// # Errors
/// When the run can't be made at all.
pub fn hunt(source: &Source, seed: u64, machine: &Machine, tries: u32) -> Result<Came, HuntError> {
    let plan = source.plan(seed)?;
    match check(&plan, machine) {
        Ok(finished) => Ok(Came::Clean(Box::new(finished))),
        Err(RunError::Violation(violation)) => Ok(Came::Broken(Box::new(shrink(
            &plan, violation, machine, tries,
        )))),
        Err(error) => Err(error.into()),
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.violation.at.world - self.plan.start;
        writeln!(
            f,
            "seed {}: not kept: {}",
            self.seed, self.violation.promise
        )?;
        writeln!(f, "  {} {}", relative(at), self.violation.what)?;
        writeln!(
            f,
            "\nafter {} runs to shorten it, this is left:",
            self.tries
        )?;
        for (name, connection) in &self.plan.config.connections {
            let streams: Vec<&str> = connection
                .streams
                .iter()
                .flatten()
                .map(|(stream, _)| stream.as_str())
                .collect();
            writeln!(f, "  connection {name}: {}", streams.join(", "))?;
        }
        for spec in &self.plan.vendors {
            for line in special(spec).lines() {
                writeln!(f, "    {line}")?;
            }
        }
        for happening_ in &self.plan.happenings {
            if happening_.what == What::Still {
                continue;
            }
            let at = i64::try_from(happening_.at).unwrap_or(i64::MAX);
            writeln!(f, "  {}  {}", relative(at), happening(&happening_.what))?;
        }
        if !self.trail.is_empty() {
            let skipped = self.trail.len().saturating_sub(f.width().unwrap_or(EVENTS));
            if skipped > 0 {
                writeln!(f, "\nthe last of {} events:", self.trail.len())?;
            } else {
                writeln!(f, "\nthe events:")?;
            }
            for line in self.trail.iter().skip(skipped) {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

/// What is special about a vendor: its keys that differ from the defaults, as TOML.
fn special(spec: &VendorSpec) -> String {
    let read = |spec: &VendorSpec| serde_json::to_value(spec).unwrap_or_default();
    let mut value = read(spec);
    let mut plain = read(&VendorSpec::default());
    // Each collection is compared with a plain one.
    let one = plain.pointer("/collections/0").cloned().unwrap_or_default();
    if let Some(collections) = plain.pointer_mut("/collections") {
        let count = spec.collections.len();
        *collections = serde_json::Value::Array(vec![one; count]);
    }
    without(&mut value, &plain);
    without_nulls(&mut value);
    toml::to_string(&value).unwrap_or_default()
}

/// TOML has no null.
fn without_nulls(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// Takes out what is the same in both.
fn without(value: &mut serde_json::Value, plain: &serde_json::Value) {
    match (value, plain) {
        (serde_json::Value::Object(value), serde_json::Value::Object(plain)) => {
            value.retain(|name, value| {
                let Some(plain) = plain.get(name) else {
                    return !value.is_null();
                };
                if value == plain || value.is_null() {
                    return false;
                }
                // What is tagged by a style is told whole.
                let tagged = value.get("style").is_some() || value.get("kind").is_some();
                if !tagged {
                    without(value, plain);
                }
                true
            });
        }
        (serde_json::Value::Array(value), serde_json::Value::Array(plain)) => {
            for (value, plain) in value.iter_mut().zip(plain) {
                without(value, plain);
            }
        }
        _ => {}
    }
}
