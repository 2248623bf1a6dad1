//! Whether a component would be made of the very same things again.
//!
//! The makers for JavaScript and Python take seconds, and what they make of the same sources differs from time to time:
//! made anew, a component would be compiled anew as well. So a component stands while nothing that it was made of has
//! changed, the maker included.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use weir_build::place::Placed;

use crate::authoring::project::Project;

/// What a component is made of.
pub(super) struct Inputs(String);

impl Inputs {
    /// Files, directories with all that is in them, and programs. A file that is missing counts as missing.
    pub(super) fn of(files: &[PathBuf], programs: &[&Path]) -> Inputs {
        let mut hash = Sha256::new();
        for file in files {
            add(&mut hash, file);
        }
        for program in programs {
            // Programs are large, and replaced as a whole.
            let real = fs::canonicalize(program).unwrap_or_default();
            let meta = fs::metadata(&real).ok();
            let facts = meta.map(|meta| (meta.len(), meta.modified().ok()));
            hash.update(format!("{}\0{facts:?}\0", real.display()));
        }
        Inputs(hex(hash))
    }

    /// The component that was made of the same inputs, if nobody has touched it since.
    pub(super) fn standing(&self, project: &Project, work: &Path) -> Option<Placed> {
        let noted = fs::read_to_string(note(work)).ok()?;
        let path = project.component();
        let wasm = fs::read(&path).ok()?;
        (noted == self.line(&wasm)).then_some(Placed {
            path,
            bytes: wasm.len(),
            changed: false,
        })
    }

    /// Remembers what a component was made of. Where that fails it is made anew the next time.
    pub(super) fn note(&self, placed: &Placed, work: &Path) {
        if let Ok(wasm) = fs::read(&placed.path) {
            let _ = fs::write(note(work), self.line(&wasm));
        }
    }

    fn line(&self, wasm: &[u8]) -> String {
        format!("{} {}\n", self.0, hex(Sha256::new_with_prefix(wasm)))
    }
}

fn note(work: &Path) -> PathBuf {
    work.join("made-of")
}

fn hex(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn add(hash: &mut Sha256, path: &Path) {
    if path.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        inside.sort();
        for path in inside {
            // What Python keeps of its sources follows from them.
            if path.file_name().is_none_or(|name| name != "__pycache__") {
                add(hash, &path);
            }
        }
        return;
    }
    let bytes = fs::read(path).ok();
    let length = bytes.as_ref().map(Vec::len);
    hash.update(format!("{}\0{length:?}\0", path.display()));
    hash.update(bytes.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::project::Language;

    #[test]
    fn a_component_stands_until_something_that_it_was_made_of_changes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        let project = Project {
            dir: dir.path().to_owned(),
            language: Language::Python,
            name: "notes".to_owned(),
        };
        let placed = Placed {
            path: project.component(),
            bytes: 4,
            changed: true,
        };
        write("src/app.py", "one");
        write("src/more/part.py", "one");
        write("maker", "v1");
        write("dist/notes.wasm", "wasm");
        let work = at("dist");
        let inputs = || Inputs::of(&[at("src"), at("tsconfig.json")], &[&at("maker")]);
        let stands = || inputs().standing(&project, &work).is_some();
        assert!(!stands());
        inputs().note(&placed, &work);
        assert!(stands());
        write("src/__pycache__/app.pyc", "compiled");
        assert!(stands());
        for (path, other, before) in [
            ("src/more/part.py", "two", "one"),
            ("maker", "v1.1", ""),
            ("dist/notes.wasm", "other", "wasm"),
            ("src/new.py", "", ""),
            ("tsconfig.json", "{}", ""),
        ] {
            write(path, other);
            assert!(!stands(), "{path}");
            write(path, before);
            inputs().note(&placed, &work);
        }
    }
}
