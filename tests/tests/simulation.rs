//! The host in a bottle: the same seed gives the same history, and nothing is lost on the way.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use support::{NOW, machine, parse};
use weir::simulate::{
    Burn, Called, Committed, Ending, Finished, Happening, Moment, Setup, Verdict, Watch, What, run,
};
use weir::sink::line::Lines;
use weir::store::{OutboxEntry, PollRow, UnitRow};
use weir_rules::coverage::Gap;
use weir_rules::model::Reason;
use weir_rules::unit::UnitState;
use weir_tests::demo::{DEMO_TOKEN, DEMO_TOKEN_VARIABLE, demo_config, demo_judge, demo_spec};
use weir_tests::judge::Judge;
use weir_tests::ledger::Ledger;
use weir_tests::spec::VendorSpec;

const MINUTE: u64 = 60_000;

/// Writes down everything, and judges what arrived.
#[derive(Default)]
struct Recorder {
    /// Only what arrives counts.
    brief: bool,
    history: String,
    lines: Lines,
    text: Vec<u8>,
    keys: HashSet<String>,
}

impl Recorder {
    fn note(&mut self, at: Moment, event: std::fmt::Arguments<'_>) -> Verdict {
        if self.brief {
            return Ok(());
        }
        writeln!(
            self.history,
            "{} {} {} {event}",
            at.world - NOW,
            at.wall - at.world,
            at.monotonic
        )
        .expect("memory takes text");
        Ok(())
    }
}

impl Watch for Recorder {
    fn started(&mut self, at: Moment, boot: u32) -> Verdict {
        self.note(at, format_args!("start {boot}"))
    }
    fn ended(&mut self, at: Moment, how: Ending) -> Verdict {
        self.note(at, format_args!("end {how:?}"))
    }
    fn happened(&mut self, at: Moment, what: &What) -> Verdict {
        self.note(at, format_args!("{what:?}"))
    }
    fn called(&mut self, call: &Called<'_>) -> Verdict {
        self.note(
            call.at,
            format_args!("{:?} {:?} {:?}", call.unit, call.request, call.served),
        )
    }
    fn committed(&mut self, at: Moment, committed: &Committed<'_>) -> Verdict {
        let ids: Vec<_> = committed.records.iter().map(|record| &record.id).collect();
        let Committed {
            unit,
            ticket,
            seen,
            state,
            due,
            ..
        } = committed;
        self.note(
            at,
            format_args!("{unit:?} {ticket:?} {seen:?} {due:?} {ids:?} {state:?}"),
        )
    }
    fn poll_ended(&mut self, at: Moment, row: &PollRow) -> Verdict {
        self.note(at, format_args!("{row:?}"))
    }
    fn delivered(&mut self, at: Moment, sink: &str, entries: &[OutboxEntry]) -> Verdict {
        for entry in entries {
            let key = self.lines.key(entry);
            // What a host had no time to note it delivers again, under the same key.
            if self.keys.insert(key) {
                self.lines.write(entry, &mut self.text);
            }
        }
        self.note(at, format_args!("{sink} took {}", entries.len()))
    }
}

fn setup(minutes: u64) -> Setup {
    let config = demo_config("https://vendors.example.test").replace(
        &format!("{{ env = \"{DEMO_TOKEN_VARIABLE}\" }}"),
        &format!("\"{DEMO_TOKEN}\""),
    );
    Setup {
        config: parse(&config),
        machine: machine(),
        vendors: demo_spec(1),
        start: NOW,
        length: minutes * MINUTE,
    }
}

fn simulate(setup: &Setup, happenings: &[Happening], seed: u64) -> (Finished, Recorder) {
    watched(setup, happenings, seed, Recorder::default())
}

fn watched(
    setup: &Setup,
    happenings: &[Happening],
    seed: u64,
    recorder: Recorder,
) -> (Finished, Recorder) {
    let recorder = Arc::new(Mutex::new(recorder));
    let finished = run(setup, happenings, seed, recorder.clone());
    let finished = finished.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let recorder = std::mem::take(&mut *recorder.lock().expect("nobody panicked"));
    (finished, recorder)
}

fn at(minute: u64, what: What) -> Happening {
    Happening {
        at: minute * MINUTE,
        what,
    }
}

/// Everything that can happen, within ten minutes.
fn troubles() -> Vec<Happening> {
    let fuse = |spared, cut| What::Fuse {
        spared,
        cut,
        pause: 3_000,
    };
    vec![
        at(1, fuse(3, Burn::DieBefore)),
        at(2, fuse(0, Burn::DieAfter)),
        at(3, What::Stop { pause: 5_000 }),
        at(4, What::Jump { ms: 90_000 }),
        at(5, What::Sleep { ms: 30_000 }),
        at(5, What::Kill { pause: 0 }),
        at(
            6,
            What::SinkDown {
                sink: None,
                ms: 40_000,
            },
        ),
        at(6, fuse(2, Burn::Refuse)),
        at(
            7,
            What::Ask {
                unit: "shop/orders".into(),
                reason: Reason::Resync,
            },
        ),
        at(8, What::Jump { ms: -200_000 }),
        at(10, What::Still),
    ]
}

fn judged(seed: u64, finished: &Finished, recorder: &Recorder) {
    let ledger = finished
        .vendors
        .iter()
        .map(|vendor| vendor.ledger(finished.at.world))
        .reduce(Ledger::and)
        .expect("there are vendors");
    let mut judge = Judge::new(demo_judge(0));
    let text = std::str::from_utf8(&recorder.text).expect("lines are UTF-8");
    for line in text.lines() {
        judge.take(serde_json::from_str(line).expect("a line is JSON"));
    }
    let mut verdict = judge.verdict(&ledger);
    assert!(
        verdict.visible() > 100,
        "seed {seed}: the vendors were silent"
    );
    // What is missing and said to be is not lost.
    for unit in &finished.units {
        let state = &unit.state;
        if let Some(tally) = verdict.units.get_mut(&unit.key.to_string()) {
            tally.lost.retain(|loss| {
                let listed =
                    |gap: &Gap| gap.extent.since <= loss.stamp && loss.stamp < gap.extent.until;
                state.parked.is_none() && !state.gaps.iter().any(listed)
            });
        }
    }
    let told = |unit: &UnitRow| {
        let UnitState {
            parked,
            waiting,
            last,
            watermark,
            gaps,
            faults,
            ..
        } = &unit.state;
        format!(
            "{}: due {:?}, {parked:?}, {waiting:?}, {last:?}, watermark {watermark:?}, {gaps:?}, {faults:?}",
            unit.key, unit.due
        )
    };
    let units: Vec<String> = finished.units.iter().map(told).collect();
    assert!(
        verdict.is_clean(),
        "seed {seed} at {}: {verdict:#?}\n{}",
        finished.at.world,
        units.join("\n")
    );
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let setup = setup(25);
    let (one, first) = simulate(&setup, &troubles(), 3);
    let (_, again) = simulate(&setup, &troubles(), 3);
    assert!(first.history.lines().count() > 1_000);
    for (line, (one, other)) in first.history.lines().zip(again.history.lines()).enumerate() {
        assert_eq!(one, other, "event {line}");
    }
    assert_eq!(first.text, again.text);
    assert_eq!(one.boots, 5);
    let (_, other) = simulate(&setup, &troubles(), 4);
    assert_ne!(first.history, other.history);
}

#[test]
fn nothing_is_lost_in_trouble() {
    // A vendor that gave in under load is left in peace for a while before the last records are read.
    let setup = setup(50);
    for seed in 0..2 {
        let brief = Recorder {
            brief: true,
            ..Recorder::default()
        };
        let (finished, recorder) = watched(&setup, &troubles(), seed, brief);
        judged(seed, &finished, &recorder);
        assert_eq!(finished.waiting, 0);
    }
}

/// A busy and a quiet connection, as `weir simulate` has them in its example: a month, or as much of it as a build
/// without optimisation can bear.
#[test]
fn a_month_of_a_busy_and_a_quiet_connection_ends_with_nothing_lost() {
    let days: u64 = if cfg!(debug_assertions) { 1 } else { 30 };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendors");
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).expect("it is there");
    let config = read("weir.toml");
    let (_, config) = config
        .split_once("\n[connection.")
        .expect("there are connections");
    let mut setup = setup(0);
    setup.config = parse(&format!("[connection.{config}"));
    setup.vendors = ["shop.toml", "desk.toml"]
        .map(|file| VendorSpec::from_toml(&read(file)).expect("a vendor"))
        .to_vec();
    setup.length = (days * 24 + 2) * 60 * MINUTE;
    // What was written last is to be found, too.
    let still = at(days * 24 * 60, What::Still);
    let brief = Recorder {
        brief: true,
        ..Recorder::default()
    };
    let (finished, recorder) = watched(&setup, &[still], 1, brief);
    judged(1, &finished, &recorder);
    assert!(finished.polls > days * 1_000, "{} polls", finished.polls);
    assert_eq!(finished.waiting, 0);
}
