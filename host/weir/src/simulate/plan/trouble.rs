//! What goes wrong in a run: at the vendor by chance and by plan, and to the host itself.

use weir_tests::dice::Dice;
use weir_tests::spec::{FaultKind, FaultPlan, Outage, QuotaCut, RandomFault, VendorSpec, WaitForm};

use super::{chance, pick};
use crate::config::Config;

const WAITS: [WaitForm; 19] = [
    WaitForm::None,
    WaitForm::Seconds,
    WaitForm::Decimal,
    WaitForm::HttpDate,
    WaitForm::Rfc850,
    WaitForm::Asctime,
    WaitForm::Rfc3339,
    WaitForm::RetryAfterMs,
    WaitForm::XMsRetryAfterMs,
    WaitForm::XRetryAfter,
    WaitForm::XRateLimitRetryAfter,
    WaitForm::BodyMs,
    WaitForm::BodySeconds,
    WaitForm::Zero,
    WaitForm::Negative,
    WaitForm::Garbage,
    WaitForm::Past,
    WaitForm::Seconds,
    WaitForm::HttpDate,
];

/// Which waits a configuration reads in an answer's body. One that it does not read nobody could keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reads {
    ms: bool,
    seconds: bool,
}

impl Reads {
    /// A configuration reads a wait when one of its connections names the field.
    pub(super) fn of(config: &Config) -> Reads {
        let names = |field: &str| {
            let mut connections = config.connections.values();
            connections.any(|connection| connection.config.contains(field))
        };
        Reads {
            ms: names("retry_after_ms\""),
            seconds: names("retry_after\""),
        }
    }

    fn wait_form(self, dice: &mut Dice) -> WaitForm {
        match pick(dice, &WAITS) {
            WaitForm::BodyMs if !self.ms => WaitForm::Seconds,
            WaitForm::BodySeconds if !self.seconds => WaitForm::Seconds,
            form => form,
        }
    }
}

/// Adds faults to a vendor, none of which outlasts `until`.
pub(super) fn faults(dice: &mut Dice, spec: &mut VendorSpec, until: i64, reads: Reads) {
    let mut plan = FaultPlan::default();
    let counted = spec
        .collections
        .iter()
        .all(|collection| !collection.envelope.count.is_empty());
    for _ in 0..pick(dice, &[0, 1, 2, 4]) {
        let fault = RandomFault {
            until_ms: Some(until),
            ..RandomFault::new(
                pick(dice, &[0.005, 0.02, 0.08]),
                fault(dice, until, counted, reads),
            )
        };
        plan.random.push(fault);
    }
    for _ in 0..pick(dice, &[0, 0, 1, 2]) {
        let from_ms = dice.between(0, until);
        let until_ms = (from_ms + dice.between(1_000, until / 5)).min(until);
        let fault = match dice.below(5) {
            0 => FaultKind::Hang,
            1 => FaultKind::Reset,
            2 => FaultKind::unavailable(WaitForm::None, 0),
            3 => FaultKind::unavailable(reads.wait_form(dice), until_ms - from_ms),
            _ => FaultKind::too_many(reads.wait_form(dice), dice.between(500, 60_000)),
        };
        plan.outages.push(Outage {
            from_ms,
            until_ms,
            fault,
        });
    }
    for _ in 0..pick(dice, &[0, 0, 1, 3]) {
        plan.lose_tokens_at_ms.push(dice.between(0, until));
    }
    spec.faults.random.extend(plan.random);
    spec.faults.outages.extend(plan.outages);
    spec.faults.lose_tokens_at_ms.extend(plan.lose_tokens_at_ms);
    if !spec.limits.is_empty() && chance(dice, 0.4) {
        let from_ms = dice.between(0, until);
        spec.quota_cuts.push(QuotaCut {
            from_ms,
            until_ms: (from_ms + until / 6).min(until),
            factor: pick(dice, &[0.1, 0.5]),
        });
    }
}

/// The longest wait that a fault of this vendor can ask for, in ms.
pub(super) fn longest_wait(spec: &VendorSpec) -> i64 {
    let random = spec.faults.random.iter().map(|fault| &fault.fault);
    let script = spec.faults.script.iter().map(|fault| &fault.fault);
    let outages = spec.faults.outages.iter().map(|outage| &outage.fault);
    let asked = random
        .chain(script)
        .chain(outages)
        .map(|fault| match fault {
            FaultKind::Status { wait_ms, .. } => *wait_ms,
            _ => 0,
        });
    let quotas = spec
        .limits
        .iter()
        .map(|limit| limit.window_ms + limit.penalty_ms);
    asked.chain(quotas).max().unwrap_or(0)
}

fn fault(dice: &mut Dice, until: i64, counted: bool, reads: Reads) -> FaultKind {
    let wait = dice.between(500, until / 10);
    match dice.below(20) {
        0..=3 => FaultKind::too_many(reads.wait_form(dice), wait),
        4 | 5 => FaultKind::unavailable(reads.wait_form(dice), wait),
        6 => FaultKind::status(500),
        7 => FaultKind::status(502),
        8 => FaultKind::status(410),
        9 => FaultKind::status(202),
        10 => FaultKind::ErrorIn200 {
            body: String::new(),
        },
        11 => FaultKind::Html200,
        12 => FaultKind::Empty200,
        13 => FaultKind::Truncated,
        14 => FaultKind::CutShort,
        15 => FaultKind::CutGzip,
        16 => FaultKind::MissingFields,
        17 if counted => FaultKind::MissingRecord,
        17 => FaultKind::status(401),
        18 => pick(
            dice,
            &[
                FaultKind::Reset,
                FaultKind::Hang,
                FaultKind::Slow { ms: 9_000 },
            ],
        ),
        _ => FaultKind::Headers {
            headers: vec![
                ("x-ratelimit-remaining".into(), "many".into()),
                ("x-ratelimit-reset".into(), "-5".into()),
                ("ratelimit".into(), "\"x\";r=;;t".into()),
            ],
        },
    }
}
