//! The text format that Prometheus reads: a page of families, each with its help, its type and its samples.

use std::fmt::Write as _;

/// The content type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page while it is written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

/// One family of metrics while it is written.
pub(super) struct Family<'p> {
    page: &'p mut Page,
    name: &'static str,
}

impl Page {
    /// A number that only grows.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// A number that goes up and down.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Counts per bound.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // Writing to a string can't fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: self, name }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// A sample.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    /// A sample of a whole number.
    pub(super) fn count(&mut self, labels: &[(&str, &str)], value: u64) {
        self.line("", labels, value as f64);
    }

    /// A sample whose name ends in something: `_bucket`, `_sum`.
    pub(super) fn part(&mut self, ending: &str, labels: &[(&str, &str)], value: f64) {
        self.line(ending, labels, value);
    }

    fn line(&mut self, ending: &str, labels: &[(&str, &str)], value: f64) {
        let text = &mut self.page.text;
        text.push_str(self.name);
        text.push_str(ending);
        for (at, (label, value)) in labels.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            text.push_str(label);
            text.push_str("=\"");
            escape(value, text);
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

fn escape(value: &str, text: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_its_format_wants() {
        let mut page = Page::default();
        let mut family = page.counter("weir_polls_total", "Polls that ended.");
        family.count(&[("outcome", "ok"), ("connection", "a\"b\\c\nd")], 7);
        family.count(&[], 1);
        page.gauge("weir_oldest_due_seconds", "Age.")
            .sample(&[], 0.25);
        assert_eq!(
            page.finish(),
            "# HELP weir_polls_total Polls that ended.\n\
             # TYPE weir_polls_total counter\n\
             weir_polls_total{outcome=\"ok\",connection=\"a\\\"b\\\\c\\nd\"} 7\n\
             weir_polls_total 1\n\
             # HELP weir_oldest_due_seconds Age.\n\
             # TYPE weir_oldest_due_seconds gauge\n\
             weir_oldest_due_seconds 0.25\n"
        );
    }
}
