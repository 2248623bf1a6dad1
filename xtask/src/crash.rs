//! `cargo xtask crash`: the real binary over real files, killed with SIGKILL again and again at random instants while it
//! starts, polls and delivers, and then judged: what the vendors showed against what was delivered.
//!
//! After each kill the store is opened, and the next host starts on it. Some rounds are a `weir sync --full` instead of
//! a `weir run`; half of the kills come right after a call. It ends by itself, and leaves no process behind.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use tokio::time::sleep;
use weir_tests::demo::{demo_judge, storm_config, storm_spec};
use weir_tests::judge::{Judge, Verdict, waits};
use weir_tests::server::{Server, Stage};
use weir_tests::time::wall;
use weir_tests::vendor::Vendor;

use crate::demo::host::{Host, Place};
use crate::demo::{kept_on_failure, some_seed, until_interrupted};
use crate::product::product;

/// No round takes longer than this before its kill.
const ROUND: Duration = Duration::from_millis(1_500);
/// A kill that waits for a call gives up by then.
const AIM: Duration = Duration::from_secs(3);
/// When the vendors have been still for so long and something has not arrived, it never will.
const DRAIN: Duration = Duration::from_secs(120);
/// And no sooner than this is it said that all is well: what comes too often comes late.
const CALM: Duration = Duration::from_secs(5);
/// A stop may take as long as the call in flight.
const STOP: Duration = Duration::from_secs(30);
/// An answer may die with the host that asked for it, until it is stored, in ms.
const UNREAD: i64 = 2_000;

const SINK: &str = "\n[sink.main]\ntype = \"file\"\npath = \"out/{connection}.ndjson\"\n";
const CONNECTIONS: [&str; 3] = ["shop", "desk", "wms"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often it is killed
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    kills: u32,
    /// The instants and whatever is random about the vendors follow from it [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Print the result as one JSON object on the last line
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Figures {
    kills: u32,
    /// Times that the store opened after a kill.
    opened: u32,
    /// Kills that found a host at work on a call.
    in_flight: u32,
    calls: u64,
    /// Versions of records that had to be delivered.
    visible: u64,
    delivered: u64,
    lost: u64,
    /// Delivered under two keys, or twice.
    duplicated: u64,
    wrong: u64,
    /// Calls before a wait was over that no kill excuses.
    waits_broken: u64,
    /// Those that one does: the answer that told of the wait died unread.
    waits_died: u64,
    seconds: u64,
    seed: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let product = product()?;
    kept_on_failure("crash-", |dir| {
        let place = Place {
            weir: product.weir,
            dir: dir.to_owned(),
        };
        let storm = Storm {
            place: &place,
            connectors: &product.connectors,
            kills: args.kills,
            seed: args.seed.unwrap_or_else(some_seed),
        };
        let figures = until_interrupted(storm.run())?;
        show(&figures, args.json)
    })
}

fn show(figures: &Figures, json: bool) -> anyhow::Result<()> {
    let Figures {
        kills,
        opened,
        in_flight,
        calls,
        visible,
        delivered,
        lost,
        duplicated,
        wrong,
        waits_broken,
        waits_died,
        seconds,
        seed,
    } = figures;
    println!(
        "killed {kills} times in {seconds} s ({in_flight} with a call in flight), seed {seed}\n\
         the store opened {opened} times\n\
         {calls} calls; {visible} versions to deliver, {delivered} delivered\n\
         lost {lost}, delivered twice {duplicated}, wrong {wrong}\n\
         calls before a wait was over: {waits_broken}, and {waits_died} whose wait died unread"
    );
    if json {
        println!("{}", serde_json::to_string(figures)?);
    }
    if lost + duplicated + wrong + waits_broken > 0 || opened < kills {
        bail!("a promise was broken");
    }
    if *visible == 0 {
        bail!("nothing was visible, so nothing was shown to hold");
    }
    Ok(())
}

struct Storm<'a> {
    place: &'a Place,
    connectors: &'a Path,
    kills: u32,
    seed: u64,
}

impl Storm<'_> {
    async fn run(&self) -> anyhow::Result<Figures> {
        let began = Instant::now();
        let vendors = storm_spec(self.seed)
            .into_iter()
            .map(|spec| Vendor::new(spec, wall()).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        let server = Server::start(Stage::new(vendors))?;
        let config = format!(
            "[host]\ndata = \"data\"\nconnectors = {:?}\n{SINK}\n{}",
            self.connectors.display().to_string(),
            storm_config(&server.origin())
        );
        fs::write(self.place.dir.join("weir.toml"), config)?;

        let (mut deaths, mut opened, mut in_flight) = (Vec::new(), 0, 0);
        for round in 0..self.kills {
            if round.is_multiple_of(20) {
                eprintln!(
                    "{round} kills, {} calls, {} s",
                    calls(&server),
                    began.elapsed().as_secs()
                );
            }
            in_flight += u32::from(self.round(round, &server).await?);
            deaths.push(wall());
            self.place
                .opens()
                .await
                .with_context(|| format!("after kill {}", round + 1))?;
            opened += 1;
        }

        eprintln!("letting it drain");
        let mut host = Host::start(self.place)?;
        sleep(Duration::from_secs(3)).await;
        server.freeze();
        let frozen = Instant::now();
        let verdict = loop {
            host.check()?;
            let verdict = self.judged(&server)?;
            let whole = verdict.lost() == 0 && frozen.elapsed() > CALM;
            if whole || frozen.elapsed() > DRAIN {
                break verdict;
            }
            sleep(Duration::from_millis(250)).await;
        };
        host.stop(STOP).await?;
        // What was delivered on the way out counts too.
        let verdict = match self.judged(&server)? {
            last if verdict.lost() == 0 => last,
            _ => verdict,
        };
        let mut figures = Figures {
            kills: self.kills,
            opened,
            in_flight,
            calls: calls(&server),
            visible: verdict.visible(),
            delivered: verdict.units.values().map(|unit| unit.delivered).sum(),
            lost: verdict.lost(),
            duplicated: sum(&verdict, |unit| unit.duplicated.len()),
            wrong: sum(&verdict, |unit| unit.wrong.len() + unit.out_of_order.len()),
            waits_broken: 0,
            waits_died: 0,
            seconds: began.elapsed().as_secs(),
            seed: self.seed,
        };
        for vendor in server.vendors() {
            let broken = waits::broken(&vendor.calls(), &deaths, UNREAD);
            for call in broken.iter().take(5) {
                eprintln!("{}: {call:?}", vendor.spec().name);
            }
            figures.waits_broken += broken.len() as u64;
            figures.waits_died += vendor.counts().early - broken.len() as u64;
        }
        if !verdict.is_clean() {
            eprintln!("{verdict:#?}");
        }
        Ok(figures)
    }

    /// A host from its start to its kill. True: a call was in flight.
    async fn round(&self, round: u32, server: &Server) -> anyhow::Result<bool> {
        let sync = round % 4 == 3;
        let verb: &[&str] = if sync { &["sync", "--full"] } else { &["run"] };
        let before = calls(server);
        let mut host = Host::start_with(self.place, verb)?;
        let dice = chance(self.seed, round);
        let mut aimed = false;
        if round.is_multiple_of(2) {
            let rest = Duration::from_micros(
                5_000 + dice % u64::try_from(ROUND.as_micros()).unwrap_or(u64::MAX),
            );
            sleep(rest).await;
        } else {
            let began = Instant::now();
            while calls(server) == before && began.elapsed() < AIM && host.ended()?.is_none() {
                sleep(Duration::from_millis(1)).await;
            }
            aimed = calls(server) > before;
            sleep(Duration::from_micros(dice % 60_000)).await;
        }
        match host.ended()? {
            None => host.kill().await?,
            // A sync that was quick. Anything else has no reason to end.
            Some(_) if sync => {}
            Some(status) => bail!(
                "weir ended by itself ({status}); the end of its log:\n{}",
                self.place.last_words()
            ),
        }
        Ok(aimed)
    }

    fn judged(&self, server: &Server) -> anyhow::Result<Verdict> {
        let mut judge = Judge::new(demo_judge(0));
        for connection in CONNECTIONS {
            let path = self
                .place
                .dir
                .join("out")
                .join(format!("{connection}.ndjson"));
            let text = fs::read(&path).unwrap_or_default();
            // A line that is being written has no end yet.
            let whole = text.iter().rposition(|byte| *byte == b'\n');
            let whole = whole.map_or(&[][..], |end| text.get(..=end).unwrap_or_default());
            judge
                .read(whole)
                .with_context(|| path.display().to_string())?;
        }
        Ok(judge.verdict(&server.ledger()))
    }
}

fn calls(server: &Server) -> u64 {
    let vendors = server.vendors().iter();
    vendors.map(|vendor| vendor.counts().calls).sum()
}

fn sum(verdict: &Verdict, of: impl Fn(&weir_tests::judge::Tally) -> usize) -> u64 {
    verdict.units.values().map(|unit| of(unit) as u64).sum()
}

/// A number that follows from both (splitmix64).
fn chance(seed: u64, round: u32) -> u64 {
    let mut state = seed.wrapping_add(u64::from(round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
