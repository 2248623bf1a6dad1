//! The run itself: start, kill, start again, let it drain, stop, judge.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::time::sleep;
use weir_tests::demo::{demo_config, demo_judge, demo_spec};
use weir_tests::judge::Judge;
use weir_tests::ledger::Ledger;
use weir_tests::server::{Server, Stage};
use weir_tests::time::wall;
use weir_tests::vendor::Vendor;

use super::host::{Host, Place, Synced};
use super::report::Report;
use super::view::{Line, Tail, View};
use crate::product::Product;

/// How often the view is drawn.
const TICK: Duration = Duration::from_millis(400);
/// Until its first call a host compiles the connectors and makes its connections ready.
const START: Duration = Duration::from_secs(60);
/// How long the vendors stay still before the end, so that the last that was written can be seen.
const DRAIN: Duration = Duration::from_secs(8);
/// When they have been still for so long and it has not arrived, it never will. The vendor that publishes no limits is not
/// asked the same again within half a minute, so a walk that waits for that may have to be followed by another.
const DRAIN_AT_MOST: Duration = Duration::from_secs(100);
/// A stop may take as long as the call in flight.
const STOP: Duration = Duration::from_secs(30);
/// How long the kill waits for a call, so that it strikes in the middle of a poll.
const AIM: Duration = Duration::from_secs(5);
/// How far a vendor's clock may be from ours, in ms.
const SKEW: i64 = 2_000;

/// What is to be run.
pub(super) struct Plan {
    pub(super) product: Product,
    /// Everything that it writes is in here.
    pub(super) dir: PathBuf,
    /// How long the vendors are polled, the drain included where it is quick.
    pub(super) seconds: Duration,
    pub(super) seed: u64,
}

pub(super) async fn run(plan: &Plan) -> anyhow::Result<Report> {
    let vendors = demo_spec(plan.seed)
        .into_iter()
        .map(|spec| Vendor::new(spec, wall()).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    let server = Server::start(Stage::new(vendors.iter().cloned()))?;
    let config = config(&plan.product.connectors, &server.origin());
    fs::write(plan.dir.join("weir.toml"), config)?;
    let place = Place {
        weir: plan.product.weir.clone(),
        dir: plan.dir.clone(),
    };
    let mut show = Show {
        view: View::new(),
        lines: vendors
            .iter()
            .flat_map(|vendor| lines(vendor, &plan.dir))
            .collect(),
        vendors,
        began: Instant::now(),
        plan,
    };
    show.view.say(&format!(
        "three vendors on {}, seed {}; starting weir",
        server.origin(),
        plan.seed
    ));

    let mut host = Host::start(&place)?;
    show.first_call(&mut host).await?;
    show.until(&mut host, plan.seconds / 2, "polling").await?;
    show.aim(&mut host).await?;
    let id = host.id();
    host.kill().await?;
    show.view.say(&format!(
        "killed weir (process {id}) with SIGKILL; starting it again"
    ));

    let mut host = Host::start(&place)?;
    let calm = plan.seconds.saturating_sub(DRAIN).max(plan.seconds * 3 / 4);
    show.until(&mut host, calm, "polling, after the kill")
        .await?;
    server.freeze();
    show.view.say(
        "nothing new is written at the vendors from here; what was written still becomes visible",
    );
    show.drained(&mut host, &server).await?;
    host.stop(STOP).await?;
    show.view.say("weir has ended after SIGTERM\n");
    judge(&show.lines, &plan.dir, &server.ledger(), plan.seed)
}

/// The vendors' connections, with waits so short that half a minute shows something.
fn config(connectors: &Path, origin: &str) -> String {
    let mut text = format!(
        "[host]\ndata = \"data\"\nconnectors = {:?}\n\n\
         [sink.file]\ntype = \"file\"\npath = \"out/{{connection}}/{{stream}}.ndjson\"\n\n{}",
        connectors.display().to_string(),
        demo_config(origin)
    );
    for connection in ["shop", "desk", "wms"] {
        text.push_str(&format!(
            "\n[connection.{connection}.defaults]\n\
             backoff = {{ base = \"500ms\", cap = \"4s\" }}\n"
        ));
    }
    // Its 429 names no wait, and weir would take a minute for it.
    text.push_str(
        "\n[[connection.wms.config.errors]]\n\
         status = 429\nclass = \"rate-limited\"\nwait = \"2s\"\n",
    );
    text
}

fn lines(vendor: &Vendor, dir: &Path) -> Vec<Line> {
    let spec = vendor.spec();
    spec.collections
        .iter()
        .map(|collection| Line {
            unit: format!("{}/{}", spec.name, collection.name),
            counts: vendor.counts(),
            delivered: Tail::new(output(dir, &spec.name, &collection.name)),
        })
        .collect()
}

fn output(dir: &Path, connection: &str, stream: &str) -> PathBuf {
    dir.join("out")
        .join(connection)
        .join(format!("{stream}.ndjson"))
}

fn judge(lines: &[Line], dir: &Path, ledger: &Ledger, seed: u64) -> anyhow::Result<Report> {
    let mut judge = Judge::new(demo_judge(0));
    for line in lines {
        let (connection, stream) = line.unit.split_once('/').unwrap_or_default();
        let path = output(dir, connection, stream);
        let file = File::open(&path).with_context(|| {
            format!("nothing of {} was delivered: {}", line.unit, path.display())
        })?;
        judge
            .read(BufReader::new(file))
            .with_context(|| path.display().to_string())?;
    }
    Ok(Report::new(&judge.verdict(ledger), ledger, 1, seed))
}

/// What is shown while time passes.
struct Show<'a> {
    view: View,
    lines: Vec<Line>,
    vendors: Vec<Arc<Vendor>>,
    /// When the host called for the first time.
    began: Instant,
    plan: &'a Plan,
}

impl Show<'_> {
    fn calls(&self) -> u64 {
        self.vendors
            .iter()
            .map(|vendor| vendor.counts().calls)
            .sum()
    }

    async fn first_call(&mut self, host: &mut Host<'_>) -> anyhow::Result<()> {
        while self.calls() == 0 {
            host.check()?;
            if self.began.elapsed() > START {
                bail!("weir has called no vendor within {START:?}");
            }
            sleep(TICK / 8).await;
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Shows how it goes until so much time has passed since the first call.
    async fn until(
        &mut self,
        host: &mut Host<'_>,
        end: Duration,
        phase: &str,
    ) -> anyhow::Result<()> {
        while self.began.elapsed() < end {
            host.check()?;
            self.draw(host, phase).await;
            sleep(TICK.min(end.saturating_sub(self.began.elapsed()))).await;
        }
        Ok(())
    }

    /// Waits for the next call: the host is at work on its answer then.
    async fn aim(&mut self, host: &mut Host<'_>) -> anyhow::Result<()> {
        let (began, calls) = (Instant::now(), self.calls());
        while self.calls() == calls && began.elapsed() < AIM {
            host.check()?;
            sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Asks for syncs until the host says of every unit that it has read it whole since the last change at the vendor,
    /// and that everything is delivered. Whether that is true is for the judge to say.
    async fn drained(&mut self, host: &mut Host<'_>, server: &Server) -> anyhow::Result<()> {
        let began = Instant::now();
        let versions = server.ledger().histories;
        let versions = versions.iter().flat_map(|history| &history.versions);
        let still = versions
            .map(|version| version.visible_from)
            .max()
            .unwrap_or(0);
        // The vendors' clocks are not quite ours, and windows end by theirs.
        let moment = still.saturating_add(SKEW);
        let mut missing = Vec::new();
        while began.elapsed() < DRAIN_AT_MOST {
            host.check()?;
            if wall() <= still {
                self.draw(host, "waiting for what was written last").await;
            } else if let Some(synced) = self.sync(host).await {
                missing = self.unread(host, moment).await;
                if synced.delivered && missing.is_empty() {
                    return Ok(());
                }
            }
            sleep(TICK).await;
        }
        self.view.say(&format!(
            "weir is not done after {DRAIN_AT_MOST:?}; not read since: {missing:?}"
        ));
        Ok(())
    }

    /// The units of which no walk went well whose window ends after `moment`.
    async fn unread(&self, host: &Host<'_>, moment: i64) -> Vec<String> {
        let mut unread = Vec::new();
        for line in &self.lines {
            if !host.has_read(&line.unit, moment).await {
                unread.push(line.unit.clone());
            }
        }
        unread
    }

    async fn sync(&mut self, host: &Host<'_>) -> Option<Synced> {
        let mut sync = pin!(host.sync());
        loop {
            tokio::select! {
                synced = &mut sync => return synced,
                () = sleep(TICK) => self.draw(host, "letting it drain: weir sync").await,
            }
        }
    }

    async fn draw(&mut self, host: &Host<'_>, phase: &str) {
        for (line, vendor) in self.lines.iter_mut().zip(&self.vendors) {
            line.counts = vendor.counts();
        }
        let status = host.status().await;
        let head = format!(
            "{:>3} s of {} s  {phase} (process {})",
            self.began.elapsed().as_secs(),
            self.plan.seconds.as_secs(),
            host.id()
        );
        self.view.show(&head, &mut self.lines, status.as_ref());
    }
}
