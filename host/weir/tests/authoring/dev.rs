//! `weir dev`, with a component that is there already.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::cli_support::Place;
use crate::guest::Guest;

/// How long a round may take on a machine that is busy.
const ROUND: Duration = Duration::from_secs(60);

struct Dev {
    child: Child,
    lines: Receiver<String>,
}

impl Dev {
    fn start(place: &Place) -> Dev {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .current_dir(place.dir())
            .args(["dev", "acme", "--component", "acme.wasm"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let (said, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                if said.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Dev { child, lines }
    }

    /// Reads on to a line that holds this.
    fn until(&self, text: &str) {
        loop {
            let line = self.lines.recv_timeout(ROUND);
            let line = line.unwrap_or_else(|error| panic!("no line with {text:?}: {error}"));
            if line.contains(text) {
                return;
            }
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_has_changed_is_shown_when_a_file_is_saved() {
    let place = Place::new();
    std::fs::write(place.dir().join("acme.wasm"), Guest::good().build()).unwrap();
    let walk = r#"{"stream":"orders","now":"2031-03-04T10:00:00Z","exchanges":[{"response":{"text":"id,name"}}]}"#;
    place.write("acme/walks/a.json", walk);
    let dev = Dev::start(&place);
    dev.until("FAILED    walk a");
    // What another command accepts is a change like any other.
    let accepted = place.weir(&["test", "acme", "--component", "acme.wasm", "--update"]);
    assert!(accepted.out.contains("accepted  walk a"), "{accepted:?}");
    dev.until("ok        walk a");
    place.write("acme/walks/b.json", "{");
    dev.until("FAILED    walk b");
    std::fs::write(place.dir().join("acme.wasm"), "no component").unwrap();
    dev.until("this is no WebAssembly file");
}
