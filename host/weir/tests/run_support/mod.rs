//! The real binary in a directory of its own: its configuration, its processes, what it wrote.
//!
//! Every wait has a deadline, every process is killed by its own id when its handle goes away, and nothing leaves the
//! directory or the loopback interface.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test file uses its own part"
)]

pub mod vendor;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use weir_tests::judge::Delivered;

/// How long anything may take before the test has failed. A busy machine needs some of it.
pub const DEADLINE: Duration = Duration::from_secs(40);

/// Waits until there is something to return.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, look)
}

/// The same with a deadline of its own.
pub fn within<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where the built connectors are.
pub fn built_connectors() -> PathBuf {
    let dir = std::env::var_os("WEIR_CONNECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../dist/connectors"),
        PathBuf::from,
    );
    assert!(
        dir.join("rest.wasm").is_file(),
        "no connectors in {}: run `cargo xtask build --connectors-only` first",
        dir.display()
    );
    dir
}

/// A connection named so that reads `/NAME/orders` at this origin, every fifth of a second, and tries again soon.
pub fn connection(name: &str, origin: &str, more: &str) -> String {
    format!(
        r#"
[connection.{name}]
connector = "rest"
{more}
[connection.{name}.config]
base_url = "{origin}/{name}"
pacing = {{ min_interval = "200ms", max_interval = "400ms" }}
[connection.{name}.config.streams.orders]
path = "/orders"
records = "/orders"
id = "/id"
[connection.{name}.streams.orders]
backoff = {{ base = "100ms", cap = "400ms" }}
"#
    )
}

/// The file sink of most tests: `out/CONNECTION.ndjson`.
pub const FILES: &str = "\n[sink.main]\ntype = \"file\"\npath = \"out/{connection}.ndjson\"\n";

/// A directory with a configuration, connectors, and whatever weir makes in it.
pub struct Place {
    dir: TempDir,
    env: Vec<(String, String)>,
    user: Option<u32>,
    binary: PathBuf,
}

impl Place {
    /// With the `rest` connector and this configuration.
    pub fn new(config: &str) -> Place {
        let place = Place::empty();
        fs::create_dir(place.connectors()).unwrap();
        fs::copy(
            built_connectors().join("rest.wasm"),
            place.connectors().join("rest.wasm"),
        )
        .unwrap();
        place.configure(config);
        place
    }

    /// With nothing in it.
    pub fn empty() -> Place {
        Place {
            dir: tempfile::tempdir().unwrap(),
            env: Vec::new(),
            user: None,
            binary: PathBuf::from(env!("CARGO_BIN_EXE_weir")),
        }
    }

    pub fn configure(&self, config: &str) {
        fs::write(self.path("weir.toml"), config).unwrap();
    }

    /// An environment variable for every process that is started from now on.
    pub fn env(mut self, name: &str, value: &str) -> Place {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Processes are started as a user to whom permissions apply; the superuser may do anything. What is in the
    /// directory so far becomes that user's.
    pub fn for_a_plain_user(mut self) -> Place {
        const NOBODY: u32 = 65_534;
        if rustix::process::geteuid().is_root() {
            let own = |path: &Path| std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY));
            // The build directory may be closed to others.
            let binary = self.path("weir");
            fs::copy(&self.binary, &binary).unwrap();
            self.binary = binary;
            for path in [self.dir.path().to_owned()]
                .into_iter()
                .chain(self.everything())
            {
                own(&path).unwrap();
            }
            self.user = Some(NOBODY);
        }
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn connectors(&self) -> PathBuf {
        self.path("connectors")
    }

    /// Every file and directory below.
    pub fn everything(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.dir.path().to_owned()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found
    }

    /// `weir ARGS`, not started yet.
    pub fn weir(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args);
        self.at_home(&mut command);
        command
    }

    /// A command with this place's directory, environment and user.
    pub fn at_home(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt;
        command
            .current_dir(self.dir.path())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    /// The binary, for commands that start it by way of another one.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Starts `weir ARGS`.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::new(self.weir(args))
    }

    /// Runs `weir ARGS` to its end.
    pub fn ask(&self, args: &[&str]) -> Ended {
        self.start(args).end()
    }

    /// What `weir ARGS --json` says, which must be one JSON object, and its exit code.
    pub fn json(&self, args: &[&str]) -> (Value, i32) {
        let mut args = args.to_vec();
        args.push("--json");
        let ended = self.ask(&args);
        let value = serde_json::from_str(&ended.out)
            .unwrap_or_else(|error| panic!("{args:?} printed no JSON ({error}): {ended:?}"));
        (value, ended.code())
    }

    /// `weir sync ARGS --json`.
    pub fn sync(&self, args: &[&str]) -> (Value, i32) {
        self.json(&[&["sync", "--wait", "1ms"], args].concat())
    }

    /// The log of polls of that unit, newest first.
    pub fn polls(&self, unit: &str) -> Vec<Value> {
        let (polls, _) = self.json(&["polls", unit, "--limit", "1000"]);
        polls["polls"].as_array().unwrap().clone()
    }

    /// The lines that the file sink wrote for a connection; none before it made the file.
    pub fn delivered(&self, connection: &str) -> Vec<Delivered> {
        let text = fs::read_to_string(self.path(&format!("out/{connection}.ndjson")));
        lines(&text.unwrap_or_default())
    }

    /// `id@revision` of them, in order.
    pub fn keys(&self, connection: &str) -> Vec<String> {
        keys(&self.delivered(connection))
    }

    /// Waits until a connection's file holds at least so many lines.
    pub fn until_delivered(&self, connection: &str, count: usize) {
        until(&format!("{count} lines of {connection}"), || {
            let text = fs::read_to_string(self.path(&format!("out/{connection}.ndjson"))).ok()?;
            (text.lines().count() >= count).then_some(())
        });
    }
}

/// Lines of a sink. The last one counts only when it is whole: it may just be written.
pub fn lines(text: &str) -> Vec<Delivered> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
        })
        .collect()
}

/// `id@revision`
pub fn keys(lines: &[Delivered]) -> Vec<String> {
    lines
        .iter()
        .map(|line| format!("{}@{}", line.id, line.revision))
        .collect()
}

/// Each record of each connection once: `1@1` to `COUNT@1`, in that order.
pub fn first_revisions(count: usize) -> Vec<String> {
    (1..=count).map(|id| format!("{id}@1")).collect()
}

/// How often each of them is there.
pub fn counted(keys: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key.as_str()).or_default() += 1;
    }
    counts
}

/// A process, killed when this goes away.
pub struct Running {
    child: Child,
    out: Heard,
    err: Heard,
}

/// What a process says, read as it comes.
struct Heard {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Heard {
    fn on(pipe: Option<impl Read + Send + 'static>) -> Heard {
        let text = Arc::new(Mutex::new(String::new()));
        let reader = pipe.map(|pipe| {
            let text = text.clone();
            std::thread::spawn(move || {
                let mut pipe = BufReader::new(pipe);
                let mut line = Vec::new();
                while pipe.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
                    let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                    text.push_str(&String::from_utf8_lossy(&line));
                    line.clear();
                }
            })
        });
        Heard { text, reader }
    }

    fn so_far(&self) -> String {
        self.text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.so_far()
    }
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Its exit code; a process that a signal has ended fails the test.
    pub fn code(&self) -> i32 {
        self.unbroken();
        self.status.code().unwrap()
    }

    /// It did not die of a signal, and nothing in it panicked.
    pub fn unbroken(&self) {
        assert!(self.status.signal().is_none(), "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
    }
}

impl Running {
    pub fn new(mut command: Command) -> Running {
        Running::of(command.spawn().unwrap())
    }

    /// A process that was started already, with the pipes that nobody has taken yet.
    pub fn of(mut child: Child) -> Running {
        Running {
            out: Heard::on(child.stdout.take()),
            err: Heard::on(child.stderr.take()),
            child,
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.err.so_far()
    }

    /// Its standard output so far.
    pub fn output(&self) -> String {
        self.out.so_far()
    }

    /// Waits until the log says this.
    pub fn until_said(&mut self, text: &str) {
        let began = Instant::now();
        while !self.log().contains(text) {
            let gone = self.is_gone() && !self.err.all().contains(text);
            assert!(
                !gone && began.elapsed() < DEADLINE,
                "waited in vain for {text:?} in: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn is_gone(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        self.end_within(DEADLINE)
    }

    /// Waits for its end, which must come in time.
    pub fn end_within(mut self, deadline: Duration) -> Ended {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                began.elapsed() < deadline,
                "it did not end within {deadline:?}: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        Ended {
            status,
            out: self.out.all(),
            err: self.err.all(),
        }
    }

    /// SIGTERM, and its end.
    pub fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.end()
    }

    /// SIGKILL, and its end.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The most memory that it has had resident, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() / 1024
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("what the process said:\n{}", self.log());
        }
    }
}
