//! Secrets: read from where the configuration says, handed to the credential code, shown to nobody.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A secret value. It cannot be printed or serialised: `Debug` shows where it came from, never what it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    value: Arc<str>,
    from: SecretSource,
}

/// Where a secret came from; fit for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable, by name.
    Env(Arc<str>),
    /// A file, by path.
    File(Arc<str>),
    /// The output of a program, by the program's name.
    Command(Arc<str>),
    /// A credential that systemd hands over, by name.
    Systemd(Arc<str>),
    /// The configuration itself.
    Inline,
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Env(name) => write!(f, "environment variable {name}"),
            SecretSource::File(path) => write!(f, "file {path}"),
            SecretSource::Command(program) => write!(f, "command {program}"),
            SecretSource::Systemd(name) => write!(f, "systemd credential {name}"),
            SecretSource::Inline => write!(f, "the configuration"),
        }
    }
}

impl Secret {
    /// A secret from somewhere else than a configuration: a token that was refreshed, a test.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Secret::from_source(value, SecretSource::Inline)
    }

    pub(super) fn from_source(value: impl Into<Arc<str>>, from: SecretSource) -> Self {
        Secret {
            value: value.into(),
            from,
        }
    }

    /// The secret itself. To be used where a request is signed or a text is masked, nowhere else.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// The file that it came from.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.from {
            SecretSource::File(path) => Some(PathBuf::from(&**path)),
            _ => None,
        }
    }

    /// Where it came from.
    pub fn source(&self) -> &SecretSource {
        &self.from
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_source_and_not_the_value() {
        let secret = Secret::from_source("tok_XYZ", SecretSource::Env("SHOP_TOKEN".into()));
        let text = format!("{secret:?} {secret:#?}");
        assert!(text.contains("SHOP_TOKEN"));
        assert!(!text.contains("tok_XYZ"));
    }
}
