//! Running cargo, and where things are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// Where cargo puts what it builds: `CARGO_TARGET_DIR`, else `target`.
pub(crate) fn target_dir() -> PathBuf {
    let root = root();
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// What one package became.
pub(crate) struct Artifact {
    /// The package's name.
    pub(crate) package: String,
    /// The files, the executable among them.
    pub(crate) files: Vec<PathBuf>,
}

/// Runs a cargo command that builds something, shows its progress on stderr, and says what came out.
pub(crate) fn build(mut cargo: Command) -> anyhow::Result<Vec<Artifact>> {
    cargo
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let output = cargo
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .with_context(|| format!("cannot run {cargo:?}"))?;
    if !output.status.success() {
        bail!("{cargo:?} failed ({})", output.status);
    }
    let messages = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    messages
        .lines()
        .filter(|line| line.contains(r#""reason":"compiler-artifact""#))
        .map(|line| {
            let message: Message = serde_json::from_str(line)
                .with_context(|| format!("cannot read cargo's message {line}"))?;
            Ok(message.artifact())
        })
        .collect()
}

#[derive(Deserialize)]
struct Message {
    package_id: String,
    manifest_path: PathBuf,
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

impl Message {
    fn artifact(self) -> Artifact {
        // "path+file:///home/me/weir/sdk#weir-sdk@0.1.0", or "...#0.1.0" when the folder has the package's name.
        let spec = self.package_id.rsplit('#').next().unwrap_or_default();
        let package = match spec.split_once('@') {
            Some((name, _)) => name.to_owned(),
            None => folder_name(&self.manifest_path),
        };
        let mut files = self.filenames;
        files.extend(self.executable);
        Artifact { package, files }
    }
}

fn folder_name(manifest: &Path) -> String {
    let name = manifest
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    name.to_string_lossy().into_owned()
}
