//! How entries are written: one JSON object each, and what stands between them.

use crate::config::Format;
use crate::sink::line::Lines;
use crate::store::OutboxEntry;

/// A format's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// What a batch of it is called.
    pub content_type: &'static str,
    before: &'static [u8],
    between: &'static [u8],
    after: &'static [u8],
}

impl Form {
    /// The frame of a format.
    pub fn of(format: Format) -> Form {
        match format {
            Format::Ndjson => Form {
                content_type: "application/x-ndjson",
                before: b"",
                between: b"\n",
                after: b"\n",
            },
            Format::Json => Form {
                content_type: "application/json",
                before: b"[",
                between: b",",
                after: b"]",
            },
        }
    }
}

/// Writes entries in a format. The same entries always become the same bytes.
pub struct Writer {
    form: Form,
    lines: Lines,
    /// One object, before it is known whether it fits.
    one: Vec<u8>,
}

impl Writer {
    /// A writer of that format.
    pub fn new(form: Form) -> Writer {
        Writer {
            form,
            lines: Lines::default(),
            one: Vec::new(),
        }
    }

    /// Appends a whole batch.
    pub fn batch(&mut self, batch: &[OutboxEntry], out: &mut Vec<u8>) {
        out.extend_from_slice(self.form.before);
        for (at, entry) in batch.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(self.form.between);
            }
            self.lines.write(entry, out);
            // Its line feed.
            out.pop();
        }
        out.extend_from_slice(self.form.after);
    }

    /// How many entries from the front make a batch of at most so many bytes; the first always does.
    pub fn fit(&mut self, batch: &[OutboxEntry], bytes: usize) -> usize {
        let mut length = self.form.before.len() + self.form.after.len();
        let mut count = 0;
        for entry in batch {
            self.one.clear();
            self.lines.write(entry, &mut self.one);
            let between = if count > 0 {
                self.form.between.len()
            } else {
                0
            };
            // Without its line feed.
            length += self.one.len() - 1 + between;
            if count > 0 && length > bytes {
                break;
            }
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::bench;

    fn entries(count: u64) -> Vec<OutboxEntry> {
        bench::entries(count, "{\"a\":\n1}")
    }

    fn text(format: Format, count: u64) -> String {
        let mut out = Vec::new();
        Writer::new(Form::of(format)).batch(&entries(count), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_lines_and_an_array_is_an_array() {
        let lines = text(Format::Ndjson, 3);
        assert!(lines.ends_with("}\n"));
        let ids: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone())
            .collect();
        assert_eq!(ids, ["1", "2", "3"]);
        let array: Vec<serde_json::Value> = serde_json::from_str(&text(Format::Json, 3)).unwrap();
        let ids: Vec<_> = array.iter().map(|object| object["id"].clone()).collect();
        assert_eq!(ids, ["1", "2", "3"]);
    }

    #[test]
    fn a_batch_that_fits_is_as_long_as_it_may_be() {
        for format in [Format::Ndjson, Format::Json] {
            let mut writer = Writer::new(Form::of(format));
            let three = text(format, 3).len();
            assert_eq!(writer.fit(&entries(5), three), 3, "{format:?}");
            assert_eq!(writer.fit(&entries(5), three - 1), 2, "{format:?}");
            assert_eq!(writer.fit(&entries(5), 1), 1, "{format:?}");
            assert_eq!(writer.fit(&entries(2), 1 << 20), 2, "{format:?}");
        }
    }
}
