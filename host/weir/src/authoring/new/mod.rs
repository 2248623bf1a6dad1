//! `weir new`: a directory that begins with a working example.
//!
//! The SDK and the contract are in the binary and are written beside the connector (`.weir/`), so that it builds with
//! exactly what this weir runs, and needs no registry that has them.

mod others;
mod rust;
mod sdk;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::project::Language;

/// The contract's files: where below its directory, and the text.
pub(in crate::authoring) fn contract() -> &'static [(&'static str, &'static str)] {
    sdk::WIT
}

/// How the connector is polled, and what its vendor is like: the same in every language.
const CONFIG: &str = include_str!("weir.toml.txt");
const VENDOR: &str = include_str!("vendor.toml.txt");
const SIMULATED: &str = "what the vendor is like, for `weir simulate`";

/// Names that a package cannot have.
const TAKEN: [&str; 9] = [
    "alloc",
    "core",
    "proc_macro",
    "std",
    "test",
    "deps",
    "build",
    "incremental",
    "weir-sdk",
];

/// Keywords of the languages, which a module's name cannot be.
const KEYWORDS: [&str; 66] = [
    "abstract", "and", "as", "assert", "async", "await", "become", "box", "break", "class",
    "const", "continue", "crate", "def", "default", "del", "do", "dyn", "elif", "else", "enum",
    "except", "extern", "false", "final", "finally", "fn", "for", "from", "function", "gen",
    "global", "if", "impl", "import", "in", "is", "lambda", "let", "loop", "macro", "match", "mod",
    "move", "mut", "nonlocal", "not", "or", "override", "pass", "priv", "pub", "raise", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "unsafe", "use",
    "while",
];

/// Why no directory was made.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is none for a connector.
    #[error("{name:?} cannot be a connector's name: {why}; such as: notes, acme-orders")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// Something is there already.
    #[error("{} exists already; nothing was changed: take another name, or another place with --dir", .0.display())]
    Exists(PathBuf),
    /// It cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A new connector's directory.
#[derive(Clone, Debug)]
pub struct Made {
    /// The directory.
    pub dir: PathBuf,
    /// What is in it for its author, in the order of reading.
    pub files: Vec<(String, &'static str)>,
}

/// What a template becomes: all files with their texts, and those that its author reads first, with what they are.
type Files = (Vec<(String, String)>, Vec<(String, &'static str)>);

/// The names that a template is filled with.
struct Names<'n> {
    /// `acme-orders`: of the connector, its package and its file.
    name: &'n str,
    /// `acme_orders`: of the module.
    module: String,
    /// `AcmeOrders`: of the type.
    class: String,
    /// `Acme orders`: for people.
    title: String,
}

/// Makes a connector's directory `DIR/NAME`.
///
/// # Errors
/// [`NewError`]: the name is not usable, or something is there already. Nothing is left behind then.
pub fn make(dir: &Path, name: &str, language: Language) -> Result<Made, NewError> {
    check(name)?;
    let target = dir.join(name);
    if target.symlink_metadata().is_ok() {
        return Err(NewError::Exists(target));
    }
    let names = Names::of(name);
    let (files, shown) = match language {
        Language::Rust => rust::files(&names),
        Language::Js => others::javascript(&names),
        Language::Ts => others::typescript(&names),
        Language::Python => others::python(&names),
    };
    for (inside, text) in files {
        let path = target.join(inside);
        let failed = |source| NewError::File {
            path: path.clone(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&path, text).map_err(failed)?;
    }
    Ok(Made {
        dir: target,
        files: shown,
    })
}

fn check(name: &str) -> Result<(), NewError> {
    let wrong = |why| {
        Err(NewError::Name {
            name: name.to_owned(),
            why,
        })
    };
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 64 {
        return wrong("it has between 1 and 64 letters");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return wrong("it begins with a small letter from a to z");
    }
    if !name.chars().all(legal) || name.ends_with('-') || name.contains("--") {
        return wrong("it is made of a-z, 0-9 and single hyphens");
    }
    if KEYWORDS.contains(&name) || TAKEN.contains(&name) {
        return wrong("it is a word of the language itself");
    }
    Ok(())
}

impl<'n> Names<'n> {
    fn of(name: &'n str) -> Names<'n> {
        let words: Vec<&str> = name.split('-').collect();
        Names {
            name,
            module: name.replace('-', "_"),
            class: words.iter().map(|word| capital(word)).collect(),
            title: capital(&words.join(" ")),
        }
    }

    fn fill(&self, template: &str) -> String {
        template
            .replace("{{name}}", self.name)
            .replace("{{module}}", &self.module)
            .replace("{{Class}}", &self.class)
            .replace("{{Title}}", &self.title)
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_ascii_uppercase().to_string() + chars.as_str(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::walk::{WalkFile, file};

    #[test]
    fn names_are_checked_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "",
            "Notes",
            "1notes",
            "no tes",
            "../notes",
            "notes/",
            "notes-",
            "a--b",
            "nötes",
            "fn",
            "std",
            "class",
            &"n".repeat(65),
        ] {
            let error = make(dir.path(), name, Language::Rust).unwrap_err();
            assert!(matches!(error, NewError::Name { .. }), "{name}: {error}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("notes"), "mine").unwrap();
        let error = make(dir.path(), "notes", Language::Rust).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
        assert_eq!(
            fs::read_to_string(dir.path().join("notes")).unwrap(),
            "mine"
        );
    }

    #[test]
    fn no_template_keeps_a_placeholder_and_its_walks_are_laid_out() {
        let dir = tempfile::tempdir().unwrap();
        for (language, code, class) in [
            (Language::Rust, "src/lib.rs", "pub struct AcmeOrders"),
            (Language::Js, "src/main.js", "\"acme-orders\""),
            (Language::Ts, "src/main.ts", "\"acme-orders\""),
            (Language::Python, "src/app.py", "\"acme-orders\""),
        ] {
            let place = dir.path().join(code.replace('/', "_"));
            fs::create_dir(&place).unwrap();
            let made = make(&place, "acme-orders", language).unwrap();
            for (file, _) in &made.files {
                let path = made.dir.join(file);
                assert!(path.exists(), "{file}");
                if path.is_file() {
                    let text = fs::read_to_string(path).unwrap();
                    assert!(!text.contains("{{"), "{file}");
                }
            }
            let text = fs::read_to_string(made.dir.join(code)).unwrap();
            assert!(text.contains(class), "{text}");
            for (name, path) in file::all(&made.dir.join("walks")).unwrap() {
                let walk = WalkFile::read(&path).unwrap();
                assert!(!walk.write(&path).unwrap(), "{code}: {name}");
            }
        }
    }
}
