//! The log, on stderr: one line per event, as text or JSON.

use std::io::IsTerminal;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Format {
    /// Reads `text` or `json`.
    pub fn parser() -> impl TypedValueParser<Value = Format> {
        PossibleValuesParser::new(["text", "json"]).map(|word| match word.as_str() {
            "json" => Format::Json,
            _ => Format::Text,
        })
    }
}

/// What is logged.
#[derive(Clone, Debug)]
pub struct Level(Targets);

impl Level {
    /// That much of what weir itself does, and of what the libraries below it do only warnings.
    pub fn plain(level: tracing::Level) -> Level {
        let below = LevelFilter::from_level(level).min(LevelFilter::WARN);
        Level(
            Targets::new()
                .with_default(below)
                // A prefix: the crates of weir begin with it.
                .with_target("weir", level),
        )
    }

    /// Nothing.
    pub fn off() -> Level {
        Level(Targets::new().with_default(LevelFilter::OFF))
    }

    /// Warnings, and nothing at all from these parts.
    pub fn warnings_except(parts: &[&str]) -> Level {
        let mut targets = Targets::new().with_default(LevelFilter::WARN);
        for part in parts {
            targets = targets.with_target(*part, LevelFilter::OFF);
        }
        Level(targets)
    }

    /// Reads a level, or a list of `part=level`.
    ///
    /// # Errors
    /// The text says what is allowed.
    pub fn parse(text: &str) -> Result<Level, String> {
        if let Ok(level) = tracing::Level::from_str(text) {
            return Ok(Level::plain(level));
        }
        if text.eq_ignore_ascii_case("off") {
            return Ok(Level::off());
        }
        // A lone word would be taken for the name of a part.
        let lone = !text.contains('=');
        match Targets::from_str(text) {
            Ok(targets) if !lone => Ok(Level(targets)),
            _ => Err("allowed: off, error, warn, info, debug, trace, or parts such as warn,weir::http=debug".to_owned()),
        }
    }
}

/// Starts the log. Before it nothing is logged; it is started once in a process.
pub(super) fn start(format: Format, chosen: Option<Level>, default: Level) {
    let Level(targets) = chosen.unwrap_or(default);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry().with(targets);
    // Only a second start could fail.
    let _ = match format {
        Format::Text => registry.with(lines.compact().with_target(false)).try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_level_is_about_weir() {
        let Level(targets) = Level::parse("debug").unwrap();
        assert!(targets.would_enable("weir::poll", &tracing::Level::DEBUG));
        assert!(targets.would_enable("weir_runtime", &tracing::Level::DEBUG));
        assert!(!targets.would_enable("hyper", &tracing::Level::INFO));
        assert!(targets.would_enable("hyper", &tracing::Level::WARN));
        let Level(targets) = Level::parse("error").unwrap();
        assert!(!targets.would_enable("hyper", &tracing::Level::WARN));
    }

    #[test]
    fn parts_have_levels_of_their_own() {
        let Level(targets) = Level::parse("warn,weir::http=debug").unwrap();
        assert!(targets.would_enable("weir::http::client", &tracing::Level::DEBUG));
        assert!(!targets.would_enable("weir::poll", &tracing::Level::INFO));
        assert!(Level::parse("loud").is_err());
    }
}
