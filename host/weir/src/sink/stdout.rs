//! Lines on standard output, for pipes and for looking.
//!
//! An entry counts as delivered when the pipe has taken it: standard output cannot be synced. A reader that goes
//! away closes the sink.

use std::io::{self, Write};

use crate::clock::BoxFuture;
use crate::sink::line::Lines;
use crate::sink::{Delivered, Remedy, Sink, SinkError};
use crate::store::OutboxEntry;

/// Bytes of lines after which a batch is cut.
const BATCH_BYTES: usize = 1 << 20;

/// Writes lines to standard output, or to anything else that takes bytes.
pub struct StdoutSink<W = io::Stdout> {
    name: String,
    lines: Lines,
    /// None while a batch is being written, and for good when that has panicked.
    out: Option<W>,
}

impl StdoutSink {
    /// A sink on this process's standard output.
    pub fn new(name: impl Into<String>) -> Self {
        Self::to(name, io::stdout())
    }
}

impl<W: Write + Send + 'static> StdoutSink<W> {
    /// A sink on another writer.
    pub fn to(name: impl Into<String>, out: W) -> Self {
        StdoutSink {
            name: name.into(),
            lines: Lines::default(),
            out: Some(out),
        }
    }

    fn error(&self, error: &io::Error) -> SinkError {
        if error.kind() == io::ErrorKind::BrokenPipe {
            let detail = "whoever read the output has stopped reading";
            SinkError::new(&self.name, detail).with(Remedy::Gone)
        } else {
            SinkError::new(&self.name, format!("standard output: {error}"))
        }
    }
}

impl<W: Write + Send + 'static> Sink for StdoutSink<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
        _key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Delivered, SinkError>> {
        Box::pin(async move {
            let mut text = Vec::new();
            let mut done = 0;
            for entry in batch {
                self.lines.write(entry, &mut text);
                done += 1;
                if text.len() >= BATCH_BYTES {
                    break;
                }
            }
            let Some(mut out) = self.out.take() else {
                let detail = "the output was lost in an earlier failure";
                return Err(SinkError::new(&self.name, detail).with(Remedy::Gone));
            };
            // A pipe whose reader is slow blocks; that must not hold up anybody else.
            let written = tokio::task::spawn_blocking(move || {
                let result = out.write_all(&text).and_then(|()| out.flush());
                (out, result)
            })
            .await;
            match written {
                Ok((out, result)) => {
                    self.out = Some(out);
                    result.map_err(|error| self.error(&error))?;
                }
                Err(panic) => return Err(SinkError::new(&self.name, panic.to_string())),
            }
            Ok(Delivered {
                done,
                refused: Vec::new(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::sink::bench;

    fn entries(count: u64) -> Vec<OutboxEntry> {
        bench::entries(count, "{}")
    }

    #[derive(Clone, Default)]
    struct Pipe {
        taken: Arc<Mutex<Vec<u8>>>,
        broken: bool,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.broken {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn every_entry_is_a_line() {
        let pipe = Pipe::default();
        let mut sink = StdoutSink::to("out", pipe.clone());
        let delivered = sink.deliver(&entries(3), None).await.unwrap();
        assert_eq!(delivered.done, 3);
        let text = String::from_utf8(pipe.taken.lock().unwrap().clone()).unwrap();
        let ids: Vec<String> = text
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(ids, ["1", "2", "3"]);
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_closes_the_sink() {
        let mut sink = StdoutSink::to(
            "out",
            Pipe {
                broken: true,
                ..Pipe::default()
            },
        );
        let error = sink.deliver(&entries(1), None).await.unwrap_err();
        assert_eq!(error.remedy, Remedy::Gone);
        assert_eq!(
            error.to_string(),
            "sink out: whoever read the output has stopped reading"
        );
    }
}
