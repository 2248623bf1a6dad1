//! What a seed makes happen: at the vendors, to the records, to the host.
//!
//! Promises: the same seed makes the same plan, on every machine. Whatever goes wrong ends at [`Plan::calm`]: then
//! nothing more is written, every vendor answers well, sinks take what they get, and the host is left alone for long
//! enough to catch up, so that what is missing at the end is lost and not late.
//!
//! | file | job |
//! | --- | --- |
//! | `vendor` | a vendor out of a seed |
//! | `config` | the `weir.toml` for it |
//! | `trouble` | what goes wrong at a vendor |
//! | `around` | what happens to the host |

mod around;
mod config;
mod trouble;
mod vendor;

use std::path::Path;

use weir_rules::model::Timestamp;
use weir_tests::dice::{Dice, seed_for};
use weir_tests::spec::{Phase, VendorSpec};

use super::{Happening, Machine, Setup, What};
use crate::config::{Config, ConfigErrors, from_text};
use vendor::Size;

/// 2031-03-04T10:00:00Z: when simulations begin, unless they are told.
pub const START: Timestamp = 1_930_384_800_000;
/// The longest backoff of seed-made configurations, in ms.
const BACKOFF_CAP: i64 = 120_000;
/// How long a host gets to catch up once all is calm, in ms: at the smallest quotas a walk takes hours. A run ends as
/// soon as everything has been read.
const CATCH_UP: i64 = 6 * 3_600_000;

/// What happens in one run.
#[derive(Clone)]
pub struct Plan {
    /// Where it comes from.
    pub seed: u64,
    /// The vendors, with all that goes wrong with them.
    pub vendors: Vec<VendorSpec>,
    /// The host's configuration.
    pub config: Config,
    /// What happens to the host and around it.
    pub happenings: Vec<Happening>,
    /// When the run begins, ms since the Unix epoch.
    pub start: Timestamp,
    /// From here on all is well, in ms after the start.
    pub calm: i64,
    /// The end, in ms after the start.
    pub length: i64,
}

/// What a plan is made over, where a seed does not make everything.
#[derive(Clone)]
pub struct Base {
    /// The host's configuration.
    pub config: Config,
    /// The vendors; what goes wrong is added to what their specs say.
    pub vendors: Vec<VendorSpec>,
    /// How long things happen, in ms.
    pub length: i64,
}

impl Plan {
    /// A plan of which everything follows from the seed, vendors and configuration too.
    ///
    /// # Errors
    /// A seed made a configuration that is refused: a fault of this module.
    pub fn of_seed(seed: u64) -> Result<Plan, ConfigErrors> {
        Plan::of_size(seed, Size::WHOLE)
    }

    /// The same with few records, so that many seeds can be tried in a minute.
    ///
    /// # Errors
    /// As [`Plan::of_seed`].
    pub fn brief(seed: u64) -> Result<Plan, ConfigErrors> {
        Plan::of_size(seed, Size::BRIEF)
    }

    fn of_size(seed: u64, size: Size) -> Result<Plan, ConfigErrors> {
        let dice = &mut Dice::new(seed_for(seed, "plan"));
        let minute = 60_000;
        let calm = pick(dice, size.minutes) * minute;
        let promised = vendor::promised(dice, calm, size);
        let mut text = "[host]\n[sink.main]\ntype = \"stdout\"\n".to_owned();
        let mut vendors = Vec::new();
        for name in ["acme", "birch"].iter().take(pick(dice, &[1, 1, 1, 2])) {
            let spec = vendor::vendor(dice, name, calm, promised);
            text.push('\n');
            text.push_str(&config::connection(dice, &spec, promised));
            vendors.push(spec);
        }
        let config = from_text(Path::new("weir.toml"), &text, &|_| None)?;
        Ok(Plan::made(seed, config, vendors, calm))
    }

    /// A plan over given vendors and a given configuration.
    pub fn over(base: &Base, seed: u64) -> Plan {
        Plan::made(seed, base.config.clone(), base.vendors.clone(), base.length)
    }

    fn made(seed: u64, config: Config, mut vendors: Vec<VendorSpec>, calm: i64) -> Plan {
        let mut longest = 0;
        let reads = trouble::Reads::of(&config);
        for (number, spec) in vendors.iter_mut().enumerate() {
            let dice = &mut Dice::new(seed_for(seed, &format!("trouble {number}")));
            trouble::faults(dice, spec, calm, reads);
            longest = longest.max(trouble::longest_wait(spec));
        }
        let dice = &mut Dice::new(seed_for(seed, "around"));
        let mut happenings = around::happenings(dice, &config, calm);
        happenings.push(Happening {
            at: calm.unsigned_abs(),
            what: What::Still,
        });
        let slowest = config
            .connections
            .values()
            .flat_map(|connection| connection.streams.iter().flatten())
            .map(|(_, stream)| stream.interval.max.unwrap_or(1_800_000))
            .max()
            .unwrap_or(1_800_000);
        let slowest = i64::try_from(slowest).unwrap_or(i64::MAX);
        let mut plan = Plan {
            seed,
            vendors,
            config,
            happenings,
            start: START,
            calm,
            length: calm + CATCH_UP + 4 * slowest + 2 * BACKOFF_CAP + longest,
        };
        plan.quiet_down();
        plan
    }

    /// Lets all that is written end when the calm begins, so that cutting a plan short keeps it whole.
    pub fn quiet_down(&mut self) {
        let calm = self.calm;
        for spec in &mut self.vendors {
            for collection in &mut spec.collections {
                let writes = &mut collection.writes;
                if writes.phases.is_empty() {
                    writes.phases.push(Phase {
                        from_ms: 0,
                        until_ms: calm,
                        per_second: writes.per_second,
                    });
                }
                writes.phases.retain(|phase| phase.from_ms < calm);
                for phase in &mut writes.phases {
                    phase.until_ms = phase.until_ms.min(calm);
                }
                writes.script.retain(|write| write.at_ms <= calm);
            }
            let faults = &mut spec.faults;
            for fault in &mut faults.random {
                fault.until_ms = Some(fault.until_ms.map_or(calm, |until| until.min(calm)));
            }
            for outage in &mut faults.outages {
                outage.until_ms = outage.until_ms.min(calm);
            }
            for cut in &mut spec.quota_cuts {
                cut.until_ms = cut.until_ms.min(calm);
            }
        }
        self.happenings
            .retain(|happening| i64::try_from(happening.at).is_ok_and(|at| at <= calm));
    }

    /// What the engine runs.
    pub fn setup(&self, machine: &Machine) -> Setup {
        Setup {
            config: self.config.clone(),
            machine: machine.clone(),
            vendors: self.vendors.clone(),
            start: self.start,
            length: self.length.unsigned_abs(),
        }
    }
}

/// One of these. Nobody asks for one of none.
#[expect(clippy::indexing_slicing, reason = "below the length")]
fn pick<T: Clone>(dice: &mut Dice, from: &[T]) -> T {
    from[usize::try_from(dice.below(from.len() as u64)).unwrap_or(0)].clone()
}

fn chance(dice: &mut Dice, probability: f64) -> bool {
    dice.chance(probability)
}

#[cfg(test)]
mod tests {
    use weir_tests::spec::{FaultKind, LimitSpec, WaitForm};
    use weir_tests::vendor::Vendor;

    use super::*;

    #[test]
    fn no_vendor_tells_a_wait_that_its_configuration_does_not_read() {
        let read = |rules: &str| {
            let text = format!(
                "[host]\n[connection.acme]\nconnector = \"rest\"\n[connection.acme.config]\n\
                 base_url = \"https://vendor.example.test\"\nerrors = [{rules}]"
            );
            from_text(Path::new("weir.toml"), &text, &|_| None).unwrap()
        };
        let in_body = |config: &Config| -> Vec<WaitForm> {
            let base = Base {
                config: config.clone(),
                vendors: vec![VendorSpec::default()],
                length: 3_600_000,
            };
            let vendors = (0..300).flat_map(|seed| Plan::over(&base, seed).vendors);
            let faults = vendors.flat_map(|vendor| vendor.faults.random);
            let waits = faults.filter_map(|fault| match fault.fault {
                FaultKind::Status { wait, .. } => Some(wait),
                _ => None,
            });
            waits
                .filter(|wait| matches!(wait, WaitForm::BodyMs | WaitForm::BodySeconds))
                .collect()
        };
        assert_eq!(in_body(&read("")), []);
        let one = "{ pointer = \"/retry_after\", wait = { pointer = \"/retry_after\" } }";
        let told = in_body(&read(one));
        assert!(!told.is_empty() && !told.contains(&WaitForm::BodyMs));
    }

    /// Also where many records share a moment.
    #[test]
    fn all_that_is_written_can_be_read_in_the_time_that_there_is_to_catch_up() {
        for seed in 0..300 {
            let plan = Plan::of_seed(seed).unwrap();
            for spec in &plan.vendors {
                let windows = |limit: &LimitSpec| (CATCH_UP / limit.window_ms).unsigned_abs();
                let calls = spec.limits.iter().map(|limit| limit.limit * windows(limit));
                let vendor = Vendor::new(spec.clone(), plan.start).unwrap();
                let pages = spec
                    .collections
                    .iter()
                    .enumerate()
                    .map(|(place, collection)| {
                        let written = vendor.versions_from(plan.start + plan.calm, place, 0);
                        written.len().div_ceil(collection.page_size.max) as u64
                    });
                let (calls, pages) = (calls.min().unwrap_or(u64::MAX), pages.sum::<u64>());
                assert!(
                    3 * pages <= calls,
                    "seed {seed}: {pages} pages, {calls} calls"
                );
            }
        }
    }

    #[test]
    fn every_seed_makes_a_plan_that_can_be_run_and_always_the_same() {
        for seed in 0..500 {
            for spec in &Plan::brief(seed).unwrap().vendors {
                spec.check().unwrap();
            }
            let plan = Plan::of_seed(seed).unwrap();
            for spec in &plan.vendors {
                spec.check().unwrap();
            }
            let again = Plan::of_seed(seed).unwrap();
            assert_eq!(plan.vendors, again.vendors);
            assert_eq!(plan.happenings, again.happenings);
            assert_eq!(plan.config.connections, again.config.connections);
        }
    }
}
