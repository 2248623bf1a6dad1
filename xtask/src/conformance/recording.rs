//! A file of recorded answers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Deserializer, de::Error as _};
use url::Url;

/// A file: who was recorded, and what was said.
#[derive(Debug, Deserialize)]
pub(super) struct Recording {
    #[serde(skip)]
    pub(super) path: PathBuf,
    pub(super) sources: Vec<Source>,
    pub(super) interactions: Vec<Interaction>,
}

/// Where answers come from.
#[derive(Debug, Deserialize)]
pub(super) struct Source {
    pub(super) vendor: String,
}

/// A request and its answer.
#[derive(Debug, Deserialize)]
pub(super) struct Interaction {
    /// Which of the sources.
    pub(super) from: usize,
    pub(super) request: Asked,
    pub(super) response: Answered,
}

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    pub(super) method: String,
    #[serde(deserialize_with = "url")]
    pub(super) url: Url,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text).map_err(|error| D::Error::custom(format!("{text}: {error}")))
}

/// All recordings below a directory, in the order of their paths.
pub(super) fn all(dir: &Path) -> anyhow::Result<Vec<Recording>> {
    let mut files = Vec::new();
    collect(dir, &mut files)?;
    files.sort();
    if files.is_empty() {
        bail!("{} holds no *.json", dir.display());
    }
    files.iter().map(|file| read(file)).collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<Recording> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut recording: Recording = serde_json::from_str(&text)
        .with_context(|| format!("{} is no recording", file.display()))?;
    recording.path = file.to_owned();
    for interaction in &recording.interactions {
        if recording.sources.get(interaction.from).is_none() {
            bail!(
                "{}: an interaction is from source {}, which is not listed",
                file.display(),
                interaction.from
            );
        }
    }
    Ok(recording)
}
