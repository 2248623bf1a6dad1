//! The connectors' directory: which connector is which file, and what is wrong with the files that did not load.
//!
//! Promises:
//! - A new, changed or removed file is noticed while the host runs. A file that is still growing is left alone
//!   until it has come to rest.
//! - A file that does not load is reported with its reason and leaves the version that was loaded from it
//!   before running. Polls in flight end on the version that they began with: they hold it.
//! - A removed file removes its connector; what is stored for its connections stays.
//!
//! Refuses: files that do not end in `.wasm` (ignored), symbolic links (reported), precompiled code (reported by
//! the runtime), and a second file that claims a name which another file already has (reported; the first in
//! name order keeps it).

mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use weir_runtime::{Connector, Digest, Runtime};

pub use watch::watch;

/// How long a file must have been at rest before it is read, when another version of it is running.
const AT_REST: Duration = Duration::from_millis(200);

/// What the directory holds, at one moment.
#[derive(Default)]
pub struct Loaded {
    connectors: BTreeMap<String, Arc<Connector>>,
    files: BTreeMap<PathBuf, File>,
}

/// One file, with the connector that runs from it.
#[derive(Clone)]
struct File {
    connector: Option<Arc<Connector>>,
    /// Why its present content does not run.
    error: Option<String>,
    /// The file that already holds this connector's name.
    shadowed_by: Option<PathBuf>,
}

/// One file of the directory.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the content that was last loaded from it, in hex.
    pub digest: Option<String>,
    /// The connector's name.
    pub name: Option<String>,
    /// Why the file, as it is now, does not run.
    pub error: Option<String>,
}

/// The connectors' directory, kept up to date.
pub struct Catalogue {
    dir: PathBuf,
    runtime: Arc<Runtime>,
    loaded: ArcSwap<Loaded>,
    /// What each file looked like when it was last read; also keeps two scans from running at once.
    marks: Mutex<BTreeMap<PathBuf, Mark>>,
}

/// Tells whether a file has changed without reading it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    size: u64,
    modified: Option<SystemTime>,
}

/// What a scan found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Connectors that are new, replaced or gone.
    pub connectors: Vec<String>,
    /// Something is still being written: scan again soon.
    pub unsettled: bool,
}

/// The directory itself can't be read.
#[derive(Debug, thiserror::Error)]
#[error("connectors directory {}: {source}: create it, or point `host.connectors` at the directory of your .wasm files", .dir.display())]
pub struct CatalogueError {
    dir: PathBuf,
    #[source]
    source: std::io::Error,
}

impl Catalogue {
    /// Reads the directory for the first time. Files that do not load are in [`Catalogue::files`].
    pub fn open(dir: &Path, runtime: Arc<Runtime>) -> Result<Catalogue, CatalogueError> {
        let catalogue = Catalogue {
            dir: dir.to_owned(),
            runtime,
            loaded: ArcSwap::default(),
            marks: Mutex::default(),
        };
        catalogue.scan()?;
        Ok(catalogue)
    }

    /// One file alone, whatever stands beside it; why it did not load is in [`Catalogue::files`].
    pub fn of(file: &Path, runtime: Arc<Runtime>) -> Catalogue {
        let catalogue = Catalogue {
            dir: file.parent().unwrap_or(file).to_owned(),
            runtime,
            loaded: ArcSwap::default(),
            marks: Mutex::default(),
        };
        let read = catalogue.read(file, None);
        let loaded = Loaded::of(BTreeMap::from([(file.to_owned(), read)]));
        catalogue.loaded.store(Arc::new(loaded));
        catalogue
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The connector of that name, as it is now.
    pub fn get(&self, name: &str) -> Option<Arc<Connector>> {
        self.loaded.load().connectors.get(name).cloned()
    }

    /// The names of all connectors.
    pub fn names(&self) -> Vec<String> {
        self.loaded.load().connectors.keys().cloned().collect()
    }

    /// All files, with what became of each.
    pub fn files(&self) -> Vec<FileReport> {
        let loaded = self.loaded.load();
        loaded
            .files
            .iter()
            .map(|(path, file)| file.report(path))
            .collect()
    }

    /// Brings the catalogue up to date with the directory.
    pub fn scan(&self) -> Result<Changes, CatalogueError> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.list()?;
        let before = self.loaded.load_full();
        let mut changes = Changes::default();
        let mut files = BTreeMap::new();
        marks.retain(|path, _| present.contains_key(path));

        for (path, mark) in present {
            let known = before.files.get(&path);
            let running = known.and_then(|file| file.connector.clone());
            let file = match known {
                Some(known) if marks.get(&path) == Some(&mark) => known.clone(),
                Some(known) if running.is_some() && !at_rest(&mark) => {
                    changes.unsettled = true;
                    known.clone()
                }
                _ => {
                    marks.insert(path.clone(), mark);
                    let file = self.read(&path, running);
                    // What was read half-written is read again when its mark changes.
                    changes.unsettled |= file.error.is_some() && !at_rest(&mark);
                    file
                }
            };
            files.insert(path, file);
        }
        drop(marks);

        let after = Loaded::of(files);
        changes.connectors = difference(&before, &after);
        self.loaded.store(Arc::new(after));
        Ok(changes)
    }

    fn list(&self) -> Result<BTreeMap<PathBuf, Mark>, CatalogueError> {
        let failed = |source| CatalogueError {
            dir: self.dir.clone(),
            source,
        };
        let mut present = BTreeMap::new();
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_none_or(|extension| extension != "wasm") {
                continue;
            }
            // A file that vanished since the listing is one that is not there.
            if let Ok(meta) = fs::symlink_metadata(&path)
                && !meta.is_dir()
            {
                let mark = Mark {
                    size: meta.len(),
                    modified: meta.modified().ok(),
                };
                present.insert(path, mark);
            }
        }
        Ok(present)
    }

    fn read(&self, path: &Path, running: Option<Arc<Connector>>) -> File {
        match self.load(path, running.as_ref()) {
            Ok(connector) => File {
                connector: Some(connector),
                error: None,
                shadowed_by: None,
            },
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "connector file does not load");
                File {
                    connector: running,
                    error: Some(error),
                    shadowed_by: None,
                }
            }
        }
    }

    fn load(
        &self,
        path: &Path,
        running: Option<&Arc<Connector>>,
    ) -> Result<Arc<Connector>, String> {
        let meta = fs::symlink_metadata(path).map_err(|e| e.to_string())?;
        if meta.file_type().is_symlink() {
            return Err("is a symbolic link: put the file itself here".to_owned());
        }
        let limit = self.runtime.limits_for(path).file;
        if meta.len() > limit as u64 {
            return Err(format!(
                "is larger than {limit} bytes: if it is meant, raise connector.NAME.file"
            ));
        }
        let bytes = fs::read(path).map_err(|e| e.to_string())?;
        if let Some(running) = running
            && *running.digest() == Digest::of(&bytes)
        {
            return Ok(running.clone());
        }
        self.runtime.load(path, &bytes).map_err(|e| e.to_string())
    }
}

impl Loaded {
    fn of(mut files: BTreeMap<PathBuf, File>) -> Loaded {
        let mut connectors: BTreeMap<String, Arc<Connector>> = BTreeMap::new();
        let mut holders: BTreeMap<String, PathBuf> = BTreeMap::new();
        for (path, file) in &mut files {
            file.shadowed_by = None;
            let Some(connector) = &file.connector else {
                continue;
            };
            let name = connector.descriptor().name.clone();
            match holders.get(&name) {
                Some(holder) => file.shadowed_by = Some(holder.clone()),
                None => {
                    holders.insert(name.clone(), path.clone());
                    connectors.insert(name, connector.clone());
                }
            }
        }
        Loaded { connectors, files }
    }
}

impl File {
    fn report(&self, path: &Path) -> FileReport {
        let name = self.connector.as_ref().map(|c| c.descriptor().name.clone());
        let error = match (&self.error, &self.shadowed_by, &name) {
            (Some(error), _, _) => Some(error.clone()),
            (None, Some(holder), Some(name)) => Some(format!(
                "{} is connector `{name}`, which {} already is: remove one of them",
                path.display(),
                holder.display()
            )),
            _ => None,
        };
        FileReport {
            path: path.to_owned(),
            digest: self.connector.as_ref().map(|c| c.digest().to_string()),
            name,
            error,
        }
    }
}

fn at_rest(mark: &Mark) -> bool {
    mark.modified
        .and_then(|modified| modified.elapsed().ok())
        .is_none_or(|age| age >= AT_REST)
}

fn difference(before: &Loaded, after: &Loaded) -> Vec<String> {
    let changed = |name: &String| {
        let digest = |loaded: &Loaded| loaded.connectors.get(name).map(|c| *c.digest());
        digest(before) != digest(after)
    };
    let mut names: Vec<String> = before
        .connectors
        .keys()
        .chain(after.connectors.keys())
        .filter(|name| changed(name))
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    names
}
