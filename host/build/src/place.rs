//! Puts a component where it is looked for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{BuildError, component};

/// A component that is ready to be dropped into a connectors' directory.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The component.
    pub path: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Was the file written anew?
    pub changed: bool,
}

/// Makes a component of a core module, checks that it is a connector that imports no function but the log's, and puts it
/// into the directory as `NAME.wasm`.
///
/// # Errors
/// [`BuildError`]: it is no such connector, or a file cannot be read or written.
pub fn package(name: &str, module: &Path, directory: &Path) -> Result<Placed, BuildError> {
    let bytes = fs::read(module).map_err(|source| BuildError::File {
        path: module.to_owned(),
        source,
    })?;
    let wasm = component::encode(&bytes)?;
    component::check_exports(&wasm)?;
    component::check_imports(&wasm)?;
    put(name, &wasm, directory)
}

/// Puts a component into the directory as `NAME.wasm`; a file that would not change is left alone.
///
/// # Errors
/// [`BuildError::File`].
pub fn put(name: &str, wasm: &[u8], directory: &Path) -> Result<Placed, BuildError> {
    let path = directory.join(format!("{name}.wasm"));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BuildError::File { path, source }
    };
    fs::create_dir_all(directory).map_err(failed(directory))?;
    let changed = fs::read(&path).ok().as_deref() != Some(wasm);
    if changed {
        // Renamed into place: a host that watches the directory never sees half a file.
        let part = directory.join(format!(".{name}.part"));
        fs::write(&part, wasm).map_err(failed(&part))?;
        fs::rename(&part, &path).map_err(failed(&path))?;
    }
    Ok(Placed {
        path,
        bytes: wasm.len(),
        changed,
    })
}
