//! Runs cargo, and says what came out.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::BuildError;

/// What one package became.
#[derive(Debug)]
pub struct Artifact {
    /// The package's name.
    pub package: String,
    /// Its `Cargo.toml`.
    pub manifest: PathBuf,
    /// The files, the executable among them.
    pub files: Vec<PathBuf>,
}

impl Artifact {
    /// The module that it became for a guest.
    pub fn wasm(&self) -> Option<&Path> {
        let is_wasm = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "wasm");
        self.files.iter().find(is_wasm).map(PathBuf::as_path)
    }
}

/// Runs a cargo command that builds something, shows its progress on stderr, and says what came out.
///
/// # Errors
/// [`BuildError`]: cargo cannot be run, has failed, or speaks in other words.
pub fn build(mut cargo: Command) -> Result<Vec<Artifact>, BuildError> {
    cargo
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let program = format!("{cargo:?}");
    let output = match cargo.spawn().and_then(Child::wait_with_output) {
        Ok(output) => output,
        Err(source) => return Err(BuildError::Start { program, source }),
    };
    if !output.status.success() {
        return Err(BuildError::Failed {
            program,
            status: output.status.to_string(),
        });
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains(r#""reason":"compiler-artifact""#))
        .map(|line| {
            serde_json::from_str::<Message>(line)
                .map(Message::artifact)
                .map_err(|error| BuildError::Message {
                    line: line.to_owned(),
                    why: error.to_string(),
                })
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
        Artifact {
            package,
            manifest: self.manifest_path,
            files,
        }
    }
}

fn folder_name(manifest: &Path) -> String {
    let name = manifest
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    name.to_string_lossy().into_owned()
}
