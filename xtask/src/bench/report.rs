//! The numbers, and how they compare with what is to be reached.

use serde::{Serialize, Serializer};

use super::measure::Cost;
use super::simulation::Simulations;

/// To be reached: CPU time, as a multiple of the floor with dedup.
const CPU: f64 = 2.0;
/// Wall time, as a multiple of the floor with dedup.
const WALL: f64 = 1.5;
/// Peak memory, and its growth when the number of records doubles.
const PEAK_MIB: f64 = 96.0;
const FLAT: f64 = 1.1;
/// A sync with nothing new: calls, and the whole process in ms.
const NO_NEWS: (u64, f64) = (2, 150.0);
/// From the start of the process to its first request, in ms.
const FIRST_REQUEST_MS: f64 = 60.0;
/// Simulated polls a second, on one core.
const SIMULATED: f64 = 20_000.0;

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) sync_100: Sync,
    pub(super) sync_1000: Sync,
    pub(super) no_news: NoNews,
    #[serde(serialize_with = "rounded")]
    pub(super) first_request_ms: f64,
    pub(super) simulated: Simulated,
}

/// A simulated month.
#[derive(Serialize)]
pub(super) struct Simulated {
    polls: u64,
    #[serde(serialize_with = "rounded")]
    polls_per_second: f64,
    /// With all that goes wrong, and with whoever checks the promises.
    #[serde(serialize_with = "rounded")]
    troubled_polls_per_second: f64,
}

impl From<Simulations> for Simulated {
    fn from(simulations: Simulations) -> Simulated {
        Simulated {
            polls: simulations.calm.polls,
            polls_per_second: simulations.calm.polls_per_second,
            troubled_polls_per_second: simulations.troubled.polls_per_second,
        }
    }
}

/// Full syncs with one page size.
#[derive(Serialize)]
pub(super) struct Sync {
    #[serde(serialize_with = "rounded")]
    cpu_vs_copy_floor: f64,
    #[serde(serialize_with = "rounded")]
    cpu_vs_dedup_floor: f64,
    #[serde(serialize_with = "rounded")]
    wall_vs_dedup_floor: f64,
    #[serde(serialize_with = "rounded")]
    peak_mib: f64,
    /// With twice as many records.
    #[serde(serialize_with = "rounded")]
    peak_mib_double: f64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    #[serde(serialize_with = "rounded")]
    cpu_s: f64,
    #[serde(serialize_with = "rounded")]
    wall_s: f64,
    #[serde(skip)]
    copy: Cost,
    #[serde(skip)]
    dedup: Cost,
    #[serde(skip)]
    weir: Cost,
}

#[derive(Serialize)]
pub(super) struct NoNews {
    pub(super) calls: u64,
    #[serde(serialize_with = "rounded")]
    pub(super) ms: f64,
}

/// What the syncs of one page size have cost, and what became of the records.
pub(super) struct Measured {
    pub(super) copy: Cost,
    pub(super) dedup: Cost,
    pub(super) weir: Cost,
    /// weir's peak with twice as many records.
    pub(super) peak_double: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
}

impl From<Measured> for Sync {
    fn from(measured: Measured) -> Sync {
        let Measured {
            copy, dedup, weir, ..
        } = measured;
        let cpu = |cost: Cost| cost.cpu.as_secs_f64();
        let wall = |cost: Cost| cost.wall.as_secs_f64();
        Sync {
            cpu_vs_copy_floor: cpu(weir) / cpu(copy),
            cpu_vs_dedup_floor: cpu(weir) / cpu(dedup),
            wall_vs_dedup_floor: wall(weir) / wall(dedup),
            peak_mib: mib(weir.peak),
            peak_mib_double: mib(measured.peak_double),
            lost: measured.lost,
            duplicated: measured.duplicated,
            cpu_s: cpu(weir),
            wall_s: wall(weir),
            copy,
            dedup,
            weir,
        }
    }
}

impl Sync {
    fn table(&self, page_size: u32) -> String {
        let seconds = |name: &str, of: fn(&Cost) -> f64, goal: f64| {
            let (copy, dedup, weir) = (of(&self.copy), of(&self.dedup), of(&self.weir));
            let ratio = weir / dedup;
            format!(
                "  {name:28}{copy:9.2}{dedup:9.2}{weir:9.2}{:10.2} x{ratio:9.2} x   {goal:.1} x dedup{}\n",
                weir / copy,
                mark(ratio <= goal)
            )
        };
        let mut text = format!(
            "\n{:30}{:>9}{:>9}{:>9}{:>12}{:>11}   to reach\n",
            format!("page size {page_size}"),
            "copy",
            "dedup",
            "weir",
            "weir/copy",
            "weir/dedup"
        );
        text += &seconds("CPU time, s", |cost| cost.cpu.as_secs_f64(), CPU);
        text += &seconds("wall time, s", |cost| cost.wall.as_secs_f64(), WALL);
        text += &format!(
            "  {:28}{:9.1}{:9.1}{:9.1}{:26}{PEAK_MIB:.0} MiB{}\n",
            "peak memory, MiB",
            mib(self.copy.peak),
            mib(self.dedup.peak),
            self.peak_mib,
            "",
            mark(self.peak_mib <= PEAK_MIB)
        );
        text += &format!(
            "  {:28}{:27.1}{:26}flat{}\n",
            "with twice as many records",
            self.peak_mib_double,
            "",
            mark(self.peak_mib_double <= self.peak_mib * FLAT)
        );
        text += &format!(
            "  {:28}{:27}{:26}0{}\n",
            "lost and duplicated records",
            self.lost + self.duplicated,
            "",
            mark(self.lost + self.duplicated == 0)
        );
        text
    }
}

impl Report {
    pub(super) fn table(&self) -> String {
        let mut text = self.sync_1000.table(1000);
        text += &self.sync_100.table(100);
        text += &format!(
            "\nsync with nothing new: {} calls, {:.0} ms (to reach: {} calls, {:.0} ms){}\n",
            self.no_news.calls,
            self.no_news.ms,
            NO_NEWS.0,
            NO_NEWS.1,
            mark(self.no_news.calls <= NO_NEWS.0 && self.no_news.ms <= NO_NEWS.1)
        );
        text += &format!(
            "start to first request: {:.0} ms (to reach: {FIRST_REQUEST_MS:.0} ms){}\n",
            self.first_request_ms,
            mark(self.first_request_ms <= FIRST_REQUEST_MS)
        );
        let simulated = &self.simulated;
        text += &format!(
            "simulated month of {} polls of one connection: {:.0} polls a second (to reach: {SIMULATED:.0}){}\n\
             with troubles and checks: {:.0} polls a second",
            simulated.polls,
            simulated.polls_per_second,
            mark(simulated.polls_per_second >= SIMULATED),
            simulated.troubled_polls_per_second
        );
        text
    }
}

fn mark(reached: bool) -> &'static str {
    if reached { "" } else { "   MISSED" }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Two decimals are more than the measurement is good for.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn rounded<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((number * 100.0).round() / 100.0)
}
