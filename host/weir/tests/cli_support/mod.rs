//! Runs the binary in a directory of its own.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test file uses a part of it, and a test fails by a panic"
)]

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a host may take to listen.
const START: Duration = Duration::from_secs(60);

/// A directory that is gone with it.
pub(crate) struct Place(TempDir);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A command at work; killed with it.
pub(crate) struct Running(Child);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn make(&self, dir: &str) {
        fs::create_dir_all(self.dir().join(dir)).unwrap();
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.dir().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.dir().join(file)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .current_dir(self.dir())
            .args(arguments)
            // Not the user's own; kept from run to run, since compiling is what takes long.
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn weir(&self, arguments: &[&str]) -> Ran {
        self.weir_with(arguments, &[])
    }

    /// The same, with more in its environment.
    pub(crate) fn weir_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
        let mut command = self.command(arguments);
        command.envs(environment.iter().copied());
        let output = command.output().unwrap();
        Ran {
            exit: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts a host, and returns when it listens.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let socket = self.dir().join("data/weir.sock");
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < START, "the host does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Running(child)
    }
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGTERM; returns the exit code.
    pub(crate) fn terminate(&mut self) -> i32 {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap().code().unwrap_or(-1)
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// What it wrote to stderr, after its end.
    pub(crate) fn errors(&mut self) -> String {
        let mut text = String::new();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
