//! Finds programs that are not ours.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where npm puts a package's programs, from its directory.
pub const NODE: &str = "node_modules/.bin";

/// Where an environment of Python has its programs, from the directory that it was made in.
pub const VENV: &str = ".venv/bin";

/// A program: inside a directory or one above it, else on the path.
pub fn find(dir: &Path, inside: &str, program: &str) -> Option<PathBuf> {
    let dir = fs::canonicalize(dir).ok()?;
    let near = dir.ancestors().map(|above| above.join(inside));
    let path = env::var_os("PATH").unwrap_or_default();
    near.chain(env::split_paths(&path))
        .map(|dir| dir.join(program))
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_a_directory_and_above_it_before_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert!(find(&inner, "tools", "sh").is_some(), "on the path");
        assert_eq!(find(&inner, "tools", "no-such-program"), None);
        let own = dir.path().join("tools");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("sh"), "").unwrap();
        let found = find(&inner, "tools", "sh");
        assert_eq!(found, Some(fs::canonicalize(own.join("sh")).unwrap()));
    }
}
