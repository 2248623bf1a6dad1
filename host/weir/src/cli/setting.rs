//! The configuration as the verbs need it.

use super::{CliError, Common};
use crate::config::{self, Config};

/// What to write into a first `weir.toml`: an API that is open to all, and little of it.
const FIRST: &str = r#"
[connection.hn]
connector = "hackernews"
config = { query = "rust", from = "2026-01-01T00:00:00Z" }

[sink.main]
type = "file"
path = "out/{connection}/{stream}.ndjson"
"#;

/// Reads the configuration.
pub(super) fn load(common: &Common) -> Result<Config, CliError> {
    begun(common)?;
    Ok(config::load(&common.config)?)
}

/// Reads the configuration for a simulation: no secret is looked up.
pub(super) fn load_simulated(common: &Common) -> Result<Config, CliError> {
    begun(common)?;
    Ok(config::load_simulated(&common.config)?)
}

/// Reads what it takes to ask a running host.
pub(super) fn load_host(common: &Common) -> Result<config::Host, CliError> {
    begun(common)?;
    Ok(config::load_host(&common.config)?)
}

fn begun(common: &Common) -> Result<(), CliError> {
    if missing(common) {
        return Err(CliError::Begin(format!(
            "there is no {}: name yours with --config, or begin with this one, then `weir check` and `weir sync`:\n{}",
            common.config.display(),
            FIRST.replace('\n', "\n    ").trim_end()
        )));
    }
    Ok(())
}

/// There is no file at all, as before the first use.
pub(super) fn missing(common: &Common) -> bool {
    !common.config.try_exists().unwrap_or(true)
}

/// Logs what is allowed and unwise.
pub(super) fn warn(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_configuration_is_a_sound_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("weir.toml");
        std::fs::write(&file, FIRST).unwrap();
        let config = config::load(&file).unwrap();
        assert_eq!(config.connections["hn"].connector, "hackernews");
        assert!(config.warnings.is_empty());
    }
}
