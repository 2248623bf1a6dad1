//! A connector's directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// What a connector is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// With the SDK.
    Rust,
    /// As an ES module.
    Js,
    /// The same, with types.
    Ts,
    /// As a module.
    Python,
}

/// Where a connector in TypeScript begins.
pub(in crate::authoring) const TYPESCRIPT: &str = "src/main.ts";

/// A connector's directory.
#[derive(Clone, Debug)]
pub struct Project {
    /// The directory.
    pub dir: PathBuf,
    /// What it is written in.
    pub language: Language,
    /// The package's name, which is the component's file name too.
    pub name: String,
}

/// Why a directory is none of a connector.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// Nothing in it says what it is.
    #[error(
        "{} holds no connector: there is no Cargo.toml (Rust), package.json (JavaScript) or pyproject.toml (Python) in it; \
         `weir new NAME` makes one that works",
        .0.display()
    )]
    None(PathBuf),
    /// What names it cannot be read.
    #[error("{}: {why}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Project {
    /// Looks into a directory.
    ///
    /// # Errors
    /// [`ProjectError`].
    pub fn open(dir: &Path) -> Result<Project, ProjectError> {
        let kinds = [
            ("Cargo.toml", Language::Rust),
            ("package.json", Language::Js),
            ("pyproject.toml", Language::Python),
        ];
        let found = kinds.iter().find(|(file, _)| dir.join(file).is_file());
        let Some((file, language)) = found else {
            return Err(ProjectError::None(dir.to_owned()));
        };
        let path = dir.join(file);
        let text = fs::read_to_string(&path).map_err(|error| ProjectError::Unreadable {
            path: path.clone(),
            why: error.to_string(),
        })?;
        let name = match language {
            Language::Rust => toml_name(&text, "package"),
            Language::Js | Language::Ts => json_name(&text),
            Language::Python => toml_name(&text, "project"),
        };
        let typed = *language == Language::Js && dir.join(TYPESCRIPT).is_file();
        Ok(Project {
            dir: dir.to_owned(),
            language: if typed { Language::Ts } else { *language },
            name: name.map_err(|why| ProjectError::Unreadable { path, why })?,
        })
    }

    /// Where its component goes.
    pub fn dist(&self) -> PathBuf {
        self.dir.join("dist")
    }

    /// Its component.
    pub fn component(&self) -> PathBuf {
        self.dist().join(format!("{}.wasm", self.name))
    }
}

/// Where a connector's recorded walks are.
pub fn walks(dir: &Path) -> PathBuf {
    dir.join("walks")
}

fn toml_name(text: &str, table: &str) -> Result<String, String> {
    let parsed: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let name = parsed.get(table).and_then(|table| table.get("name"));
    let name = name.and_then(toml::Value::as_str);
    name.map(str::to_owned)
        .ok_or_else(|| format!("there is no [{table}] with a name in it"))
}

fn json_name(text: &str) -> Result<String, String> {
    let parsed: serde_json::Value =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let name = parsed.get("name").and_then(serde_json::Value::as_str);
    // A scope is the registry's, not the connector's.
    name.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned())
        .ok_or_else(|| "there is no name in it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_tells_what_it_holds() {
        for (file, text, language) in [
            (
                "Cargo.toml",
                "[package]\nname = \"notes\"\n",
                Language::Rust,
            ),
            ("package.json", r#"{"name":"@acme/notes"}"#, Language::Js),
            (
                "pyproject.toml",
                "[project]\nname = \"notes\"\n",
                Language::Python,
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(file), text).unwrap();
            let project = Project::open(dir.path()).unwrap();
            assert_eq!(
                (project.language, project.name.as_str()),
                (language, "notes")
            );
            assert!(project.component().ends_with("dist/notes.wasm"));
            fs::create_dir(dir.path().join("src")).unwrap();
            fs::write(dir.path().join(TYPESCRIPT), "").unwrap();
            let typed = Project::open(dir.path()).unwrap().language == Language::Ts;
            assert_eq!(typed, language == Language::Js);
        }
    }

    #[test]
    fn what_is_none_says_how_to_begin() {
        let dir = tempfile::tempdir().unwrap();
        let error = Project::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("weir new"), "{error}");
        fs::write(dir.path().join("Cargo.toml"), "[workspace]\n").unwrap();
        let error = Project::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("[package]"), "{error}");
    }
}
