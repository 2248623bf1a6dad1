//! A connector's log lines.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use crate::guest::{EMPTY, Guest};
use crate::load;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Written;

    fn make_writer(&'a self) -> Written {
        self.clone()
    }
}

/// What the log says while a connector with this body for `partitions` is called so many times.
fn lines(guest: &Guest, calls: usize) -> Vec<String> {
    let connector = load(guest);
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(written.clone())
        .with_ansi(false)
        .without_time()
        .with_max_level(tracing::Level::DEBUG)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..calls {
            connector.partitions("orders", "{}").unwrap().unwrap();
        }
    });
    let bytes = written.0.lock().unwrap().clone();
    String::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_line_is_one_line_without_anything_a_terminal_obeys() {
    let guest = Guest::good()
        .with_log()
        .module(r#"(data (i32.const 256) "hi\1b[2Jthere\0aWARN forged")"#)
        .body(
            "partitions",
            &format!("(call $log (i32.const 1) (i32.const 256) (i32.const 23)) {EMPTY}"),
        );
    let lines = lines(&guest, 1);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("INFO connector: hi\\u{1b}[2Jthere\\nWARN forged"),
        "{lines:?}"
    );
    assert!(
        lines[0].contains("connector=\"acme\"") && lines[0].contains("function=\"partitions\"")
    );
}

#[test]
fn a_flood_is_dropped_and_counted() {
    let body = format!(
        "(local.set $i (i32.const 1000))
         (loop
            (call $log (i32.const 2) (i32.const 20000) (i32.const 40000))
            (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
         {EMPTY}"
    );
    let lines = lines(&Guest::good().with_log().body("partitions", &body), 10);
    let dropped: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("log lines dropped"))
        .collect();
    assert_eq!(dropped.len(), 10);
    assert!(dropped[0].contains("dropped=936"), "{}", dropped[0]);
    // 64 in each call until the connector's own allowance is used up; then what a second restores.
    let written = lines.len() - dropped.len();
    assert!((256..400).contains(&written), "{written}");
    // 1 KiB of text; every one of its zeros is shown with five characters.
    assert!(lines.iter().all(|line| line.len() < 1200));
}

#[test]
fn a_line_that_is_not_text_ends_the_call() {
    let guest = Guest::good().with_log().body(
        "partitions",
        &format!(
            "(i32.store8 (i32.const 256) (i32.const 0xff))
             (call $log (i32.const 1) (i32.const 256) (i32.const 1)) {EMPTY}"
        ),
    );
    assert!(load(&guest).partitions("orders", "{}").is_err());
}
