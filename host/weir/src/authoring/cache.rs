//! Where an author's compiled connectors are kept: in the user's own cache, for all directories together.
//!
//! A connector in Python holds an interpreter, and compiling it costs more than everything else that `weir test` does.
//! What is kept is found by the component's digest and checked before it is run, as a host does it.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

/// The directory, made if it is missing; none where there is no place for one.
pub fn dir() -> Option<PathBuf> {
    let dir = place(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    match made {
        Ok(()) => Some(dir),
        Err(error) => {
            tracing::warn!(dir = %dir.display(), %error, "compiled connectors are not kept");
            None
        }
    }
}

/// By the rules of the XDG base directories: a path that is not absolute counts for nothing.
fn place(cache: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let cache = cache.map(PathBuf::from).and_then(absolute);
    let home = || {
        let home = home.map(PathBuf::from).and_then(absolute)?;
        Some(home.join(".cache"))
    };
    Some(cache.or_else(home)?.join("weir").join("compiled"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_in_the_users_cache_or_nowhere() {
        let at = |cache: Option<&str>, home: Option<&str>| {
            place(cache.map(OsString::from), home.map(OsString::from))
        };
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(at(Some("/c"), Some("/h")), is("/c/weir/compiled"));
        assert_eq!(at(Some("c"), Some("/h")), is("/h/.cache/weir/compiled"));
        assert_eq!(at(None, Some("/h")), is("/h/.cache/weir/compiled"));
        assert_eq!(at(None, Some("")), None);
        assert_eq!(at(None, None), None);
    }
}
