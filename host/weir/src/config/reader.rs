//! Walks a TOML document key by key and collects every complaint, so that one run shows all of them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weir_rules::model::Duration;

use super::error::{ConfigError, Source, nearest, suggest};
use super::units;

/// How an environment variable is looked up; a parameter so that tests need no real environment.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The document being read, and what was found wrong with it so far.
pub(super) struct Report<'a> {
    pub(super) source: Source,
    pub(super) errors: Vec<ConfigError>,
    pub(super) warnings: Vec<ConfigError>,
    pub(super) env: Env<'a>,
    /// What stands in for secrets that are referred to; none: they are looked up.
    pub(super) stand_in: Option<&'static str>,
    text: &'a str,
    line_starts: Vec<usize>,
    folder: PathBuf,
}

impl<'a> Report<'a> {
    pub(super) fn new(file: &Path, text: &'a str, env: Env<'a>) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Report {
            source: Source {
                file: file.to_owned(),
                ..Source::default()
            },
            errors: Vec::new(),
            warnings: Vec::new(),
            env,
            stand_in: None,
            text,
            line_starts,
            folder: file.parent().unwrap_or(Path::new("")).to_owned(),
        }
    }

    /// The line of a byte, counted from 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= byte)
    }

    /// A path as written, read from the configuration's folder.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        self.folder.join(written)
    }

    pub(super) fn complain(&mut self, at: &Entry<'_>, problem: &str, help: &str) {
        let error = self.about(at, problem, help);
        self.errors.push(error);
    }

    pub(super) fn warn(&mut self, at: &Entry<'_>, problem: &str, help: &str) {
        let warning = self.about(at, problem, help);
        self.warnings.push(warning);
    }

    /// A complaint about a key that is not there.
    pub(super) fn missing(&mut self, section: &Section<'_>, key: &str, help: &str) {
        self.errors.push(ConfigError {
            file: self.source.file.clone(),
            line: Some(self.line(section.span.start)),
            key: section.path_of(key),
            value: None,
            problem: "is missing".to_owned(),
            help: help.to_owned(),
        });
    }

    fn about(&self, at: &Entry<'_>, problem: &str, help: &str) -> ConfigError {
        ConfigError {
            file: self.source.file.clone(),
            line: Some(self.line(at.span.start)),
            key: at.path.clone(),
            value: self.excerpt(at),
            problem: problem.to_owned(),
            help: help.to_owned(),
        }
    }

    /// The value as written, if it is short and surely no secret.
    fn excerpt(&self, at: &Entry<'_>) -> Option<String> {
        if at.private || may_hold_secret(&at.path) {
            return None;
        }
        match at.value {
            DeValue::Table(_) | DeValue::Array(_) => None,
            _ => {
                let written = self.text.get(at.span.clone())?;
                let short: String = written.chars().take(60).collect();
                let cut = short.len() < written.len();
                Some(if cut { format!("{short}...") } else { short })
            }
        }
    }
}

/// A key whose value is better not shown, whatever table it stands in.
pub(super) fn may_hold_secret(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key).to_ascii_lowercase();
    [
        "token", "secret", "password", "passwd", "key", "bearer", "auth",
    ]
    .iter()
    .any(|word| last.contains(word))
}

/// One value and where it stands.
#[derive(Clone)]
pub(super) struct Entry<'d> {
    pub(super) path: String,
    pub(super) value: &'d DeValue<'d>,
    pub(super) span: Range<usize>,
    /// May be a secret: never quoted.
    pub(super) private: bool,
}

impl<'d> Entry<'d> {
    /// As a table; anything else is a complaint.
    pub(super) fn section(&self, report: &mut Report<'_>, help: &str) -> Option<Section<'d>> {
        match self.value {
            DeValue::Table(table) => Some(Section {
                path: self.path.clone(),
                table,
                span: self.span.clone(),
                known: Vec::new(),
                private: self.private,
            }),
            _ => self.wrong_type(report, "a table", help),
        }
    }

    pub(super) fn text(&self, report: &mut Report<'_>, help: &str) -> Option<&'d str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => self.wrong_type(report, "a string", help),
        }
    }

    /// A string that is not blank.
    pub(super) fn filled(&self, report: &mut Report<'_>, help: &str) -> Option<&'d str> {
        let text = self.text(report, help)?;
        if text.trim().is_empty() {
            report.complain(self, "is empty", help);
            return None;
        }
        Some(text)
    }

    pub(super) fn flag(&self, report: &mut Report<'_>) -> Option<bool> {
        match self.value {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.wrong_type(
                report,
                "true or false",
                "allowed: true or false, without quotes",
            ),
        }
    }

    /// A whole number within `allowed`.
    pub(super) fn number(&self, report: &mut Report<'_>, allowed: Range<u64>) -> Option<u64> {
        let help = format!(
            "allowed: a whole number from {} to {}",
            allowed.start,
            allowed.end.saturating_sub(1)
        );
        let DeValue::Integer(written) = self.value else {
            return self.wrong_type(report, "a whole number", &help);
        };
        match u64::from_str_radix(&written.as_str().replace('_', ""), written.radix()) {
            Ok(number) if allowed.contains(&number) => Some(number),
            _ => {
                report.complain(self, "is out of range", &help);
                None
            }
        }
    }

    pub(super) fn duration(&self, report: &mut Report<'_>) -> Option<Duration> {
        self.measure(report, units::DURATION_HELP, "a duration", units::duration)
    }

    pub(super) fn size(&self, report: &mut Report<'_>) -> Option<u64> {
        self.measure(report, units::SIZE_HELP, "a size", units::size)
    }

    fn measure(
        &self,
        report: &mut Report<'_>,
        form: &str,
        what: &str,
        read: fn(&str) -> Result<u64, &'static str>,
    ) -> Option<u64> {
        let help = format!("allowed: {form}");
        let DeValue::String(text) = self.value else {
            return self.wrong_type(report, what, &help);
        };
        read(text)
            .map_err(|problem| {
                report.complain(self, &format!("is not {what}: it {problem}"), &help);
            })
            .ok()
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &self,
        report: &mut Report<'_>,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let help = format!("allowed: {}", names.join(", "));
        let text = self.text(report, &help)?;
        let found = words.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            report.complain(self, "is not known", &suggest(text, &names));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A list of strings.
    pub(super) fn texts(&self, report: &mut Report<'_>, help: &str) -> Option<Vec<&'d str>> {
        let DeValue::Array(items) = self.value else {
            return self.wrong_type(report, "a list of strings", help);
        };
        items
            .iter()
            .enumerate()
            .map(|(at, item)| self.item(at, item).text(report, help))
            .collect()
    }

    /// The entry of one item of this list.
    pub(super) fn item(&self, at: usize, item: &'d Spanned<DeValue<'d>>) -> Entry<'d> {
        Entry {
            path: format!("{}.{at}", self.path),
            value: item.get_ref(),
            span: item.span(),
            private: self.private,
        }
    }

    pub(super) fn wrong_type<T>(
        &self,
        report: &mut Report<'_>,
        wanted: &str,
        help: &str,
    ) -> Option<T> {
        let problem = format!("is {}, not {wanted}", a(self.value.type_str()));
        report.complain(self, &problem, help);
        None
    }
}

/// The type's name with its article.
fn a(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {type_name}")
}

/// A table that is being read: every key that is asked for is known, and what is left over is a complaint.
pub(super) struct Section<'d> {
    pub(super) path: String,
    pub(super) table: &'d DeTable<'d>,
    pub(super) span: Range<usize>,
    known: Vec<&'static str>,
    private: bool,
}

impl<'d> Section<'d> {
    pub(super) fn root(table: &'d Spanned<DeTable<'d>>) -> Self {
        Section {
            path: String::new(),
            table: table.get_ref(),
            span: 0..0,
            known: Vec::new(),
            private: false,
        }
    }

    /// The values below here may be secrets: complaints do not quote them.
    pub(super) fn private(mut self) -> Self {
        self.private = true;
        self
    }

    fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// The value of a key that may be there.
    pub(super) fn get(&mut self, report: &mut Report<'_>, key: &'static str) -> Option<Entry<'d>> {
        self.known.push(key);
        let (written, value) = self.table.get_key_value(key)?;
        Some(self.entry(report, written, value))
    }

    /// All entries, for a table whose keys are names.
    pub(super) fn entries(&self, report: &mut Report<'_>) -> Vec<(&'d str, Entry<'d>)> {
        self.table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), self.entry(report, key, value)))
            .collect()
    }

    fn entry(
        &self,
        report: &mut Report<'_>,
        key: &'d Spanned<std::borrow::Cow<'d, str>>,
        value: &'d Spanned<DeValue<'d>>,
    ) -> Entry<'d> {
        let path = self.path_of(key.get_ref());
        let line = report.line(key.span().start);
        report.source.lines.insert(path.clone(), line);
        // The span of a table made by a header or a dotted key may lie elsewhere; its key tells where it is.
        let span = match value.get_ref() {
            DeValue::Table(_) => key.span(),
            _ => value.span(),
        };
        Entry {
            path,
            value: value.get_ref(),
            span,
            private: self.private,
        }
    }

    /// Complains of the keys that nobody asked for.
    pub(super) fn finish(self, report: &mut Report<'_>) {
        for (key, value) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            // A value is quoted only where the key is surely a misspelt harmless one.
            let meant = nearest(name, self.known.iter().copied());
            let mut entry = self.entry(report, key, value);
            entry.private |= meant.is_none_or(may_hold_secret);
            report.complain(&entry, "is not a known key", &suggest(name, &self.known));
        }
    }
}
