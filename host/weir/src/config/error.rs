//! What is wrong with a configuration, said so that it can be put right without a manual.

use std::fmt;
use std::path::{Path, PathBuf};

/// One thing that is wrong, or (as a warning) unwise.
///
/// Its text is one line: `file:line: key = value: what is wrong; what is allowed, with an example`. A value that
/// may be a secret is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; none when the whole file is concerned.
    pub line: Option<usize>,
    /// The key path, `connection.shop.streams.orders.interval`; empty for the whole file.
    pub key: String,
    /// The value as written, shortened; none where it is absent, long or perhaps a secret.
    pub value: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What is allowed and an example.
    pub help: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.as_os_str().is_empty() {
            write!(f, "{}:", self.file.display())?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            write!(f, " ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}", self.key)?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.problem)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Everything that is wrong with a configuration, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// The known name that a misspelt one most likely means; none when nothing is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// "did you mean X?" where something is near, else the list of what there is.
pub(super) fn suggest(name: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean {near}? Known here: {all}"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("known here: {all}"),
    }
}

/// Where each key stands, kept so that what is found out later (by a connector's schema, by the catalogue) can
/// still be reported with its line.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub(super) file: PathBuf,
    pub(super) lines: std::collections::BTreeMap<String, usize>,
}

impl Source {
    /// The configuration's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line of a key, or of the nearest table around it.
    pub fn line(&self, key: &str) -> Option<usize> {
        let mut key = key;
        loop {
            if let Some(line) = self.lines.get(key) {
                return Some(*line);
            }
            let (outer, _) = key.rsplit_once('.')?;
            key = outer;
        }
    }

    /// The same error with its file and line.
    pub fn locate(&self, mut error: ConfigError) -> ConfigError {
        error.line = self.line(&error.key);
        error.file.clone_from(&self.file);
        error
    }

    /// An error about a key of this file.
    pub fn error(
        &self,
        key: &str,
        value: Option<&str>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> ConfigError {
        self.locate(ConfigError {
            file: PathBuf::new(),
            line: None,
            key: key.to_owned(),
            value: value.map(|value| format!("{value:?}")),
            problem: problem.into(),
            help: help.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_nonsense_is_not() {
        let known = ["interval", "overlap", "freshness"];
        assert_eq!(nearest("intervall", known), Some("interval"));
        assert_eq!(nearest("Overlap", known), Some("overlap"));
        assert_eq!(nearest("xyz", known), None);
    }

    #[test]
    fn a_key_without_a_line_is_reported_at_the_table_around_it() {
        let mut source = Source {
            file: "weir.toml".into(),
            ..Source::default()
        };
        source.lines.insert("connection.shop".to_owned(), 4);
        let error = source.error("connection.shop.config.page", Some("x"), "wrong", "write 1");
        assert_eq!(
            error.to_string(),
            r#"weir.toml:4: connection.shop.config.page = "x": wrong; write 1"#
        );
    }
}
