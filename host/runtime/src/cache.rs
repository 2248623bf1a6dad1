//! Compiled connectors, kept between runs.
//!
//! Compiling takes some 50 ms, mapping what was compiled 0.2 ms. A file is named after the SHA-256 of the
//! connector and a hash of everything that its code depends on: wasmtime's version and settings, the processor,
//! and this crate. So nothing is ever out of date; what no longer fits is simply not found.
//!
//! The cache is only a cache: whatever is wrong with it, the connector is compiled again, and [`CacheStats`]
//! counts it. Why mapped code can be trusted is explained in `cwasm.rs`.

use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::connector::Digest;
use crate::cwasm;
use crate::error::RuntimeError;

/// Compiled connectors that are kept; the ones not used for longest go first.
const KEPT: usize = 256;

/// A file that has been half written for so long is nobody's any more.
const LEFTOVER: Duration = Duration::from_secs(3600);

/// What the cache has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Connectors that were mapped instead of compiled.
    pub hits: u64,
    /// Connectors that were compiled.
    pub compiled: u64,
    /// Cached files that were damaged or refused, and compiled again.
    pub damaged: u64,
    /// Compiled connectors that could not be kept (a full disk, say).
    pub unkept: u64,
}

/// A directory of compiled code; without one, everything is compiled anew.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: Option<Private>,
    /// Hash of everything but the connector that compiled code depends on.
    settings: String,
    hits: AtomicU64,
    compiled: AtomicU64,
    damaged: AtomicU64,
    unkept: AtomicU64,
}

/// A directory that nobody but this user can read or write.
#[derive(Debug)]
pub(crate) struct Private(PathBuf);

/// A file in a private directory with the very bytes that this host wrote.
pub(crate) struct Verified(PathBuf);

impl Verified {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Cache {
    pub(crate) fn open(engine: &Engine, dir: Option<PathBuf>) -> Result<Self, RuntimeError> {
        let dir = dir.map(Private::open).transpose()?;
        Ok(Cache {
            dir,
            settings: settings(engine),
            hits: AtomicU64::new(0),
            compiled: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            unkept: AtomicU64::new(0),
        })
    }

    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            compiled: self.compiled.load(Ordering::Relaxed),
            damaged: self.damaged.load(Ordering::Relaxed),
            unkept: self.unkept.load(Ordering::Relaxed),
        }
    }

    /// The compiled form of the connector with this digest, if it is kept and sound.
    pub(crate) fn get(&self, engine: &Engine, digest: &Digest) -> Option<Component> {
        let dir = self.dir.as_ref()?;
        let name = self.name(digest);
        let outcome = dir.verify(&name).and_then(|file| {
            file.map(|file| cwasm::map(engine, &file).map_err(io::Error::other))
                .transpose()
        });
        match outcome {
            Ok(Some(component)) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                Some(component)
            }
            Ok(None) => None,
            Err(error) => {
                self.damaged.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    file = %dir.0.join(&name).display(),
                    %error,
                    "a compiled connector in the cache cannot be used; compiling it again"
                );
                None
            }
        }
    }

    /// Keeps what has just been compiled. A failure costs time at the next start and nothing else.
    pub(crate) fn put(&self, digest: &Digest, component: &Component) {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let Some(dir) = &self.dir else { return };
        let kept = component
            .serialize()
            .map_err(io::Error::other)
            .and_then(|code| dir.keep(&self.name(digest), &code));
        if let Err(error) = kept {
            self.unkept.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                dir = %dir.0.display(),
                %error,
                "a compiled connector cannot be kept in the cache; the next start compiles it again"
            );
        }
    }

    fn name(&self, digest: &Digest) -> String {
        format!("{digest}-{}.cwasm", self.settings)
    }
}

impl Private {
    /// Makes the directory if it is missing.
    fn open(dir: PathBuf) -> Result<Self, RuntimeError> {
        let refuse = |reason: String| RuntimeError::Cache {
            dir: dir.clone(),
            reason,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| refuse(format!("cannot be made: {error}")))?;
        let meta = fs::symlink_metadata(&dir).map_err(|error| refuse(error.to_string()))?;
        if !meta.is_dir() {
            return Err(refuse("is a link or a file; name a directory".into()));
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(refuse(
                "belongs to another user; compiled code is run as it is, so name a directory of your own".into(),
            ));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(refuse(format!(
                "can be entered by others (mode {:o}); compiled code is run as it is, so run `chmod 700` on it",
                meta.mode() & 0o777
            )));
        }
        Ok(Private(dir))
    }

    /// `None` if there is no such file; an error if it is not what was written.
    fn verify(&self, name: &str) -> io::Result<Option<Verified>> {
        let path = self.0.join(name);
        let mut file = match open_no_link(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let expected = fs::read_to_string(sum_of(&path)).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("its checksum cannot be read: {error}"),
            )
        })?;
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            let n = file.read(&mut chunk)?;
            match chunk.get(..n) {
                None | Some([]) => break,
                Some(bytes) => hash.update(bytes),
            }
        }
        if Digest::from(hash).to_string() != expected.trim_end() {
            return Err(io::Error::other("its checksum does not match"));
        }
        // For the choice of what goes first when there are too many. A cache on a read-only disk still serves.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(Verified(path)))
    }

    fn keep(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let sum = Digest::of(code).to_string();
        // The checksum first: a crash in between leaves a checksum without a file, which is no entry at all.
        replace(&sum_of(&path), sum.as_bytes())?;
        replace(&path, code)?;
        File::open(&self.0)?.sync_all()?;
        self.prune()
    }

    fn prune(&self) -> io::Result<()> {
        let now = SystemTime::now();
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            let changed = fs::symlink_metadata(&path)?.modified()?;
            if path.extension().is_some_and(|ext| ext == "cwasm") {
                kept.push((changed, path));
            } else if is_leftover(&path)
                && now.duration_since(changed).is_ok_and(|age| age > LEFTOVER)
            {
                fs::remove_file(&path)?;
            }
        }
        kept.sort();
        let surplus = kept.len().saturating_sub(KEPT);
        for (_, path) in kept.into_iter().take(surplus) {
            fs::remove_file(&path)?;
            // It may have gone already.
            let _ = fs::remove_file(sum_of(&path));
        }
        Ok(())
    }
}

/// Was it being written when a host was killed?
fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".cwasm.") || name.contains(".sha256.")
}

fn sum_of(path: &Path) -> PathBuf {
    path.with_extension("sha256")
}

fn open_no_link(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Writes beside, flushes, renames: whoever opens the name finds all of it or what was there before.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temp = path.to_owned().into_os_string();
    temp.push(format!(".{}.{}", std::process::id(), unique()));
    let temp = PathBuf::from(temp);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temp)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temp, path));
    if written.is_err() {
        // What is left of it helps nobody, and the first error is the one to report.
        let _ = fs::remove_file(&temp);
    }
    written
}

/// Two threads may keep the same connector at once.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A hash of everything but the connector itself that compiled code depends on.
fn settings(engine: &Engine) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    std::env::consts::OS.hash(&mut hasher);
    let mut name = Digest::from(hasher.0).to_string();
    name.truncate(16);
    name
}

/// The standard library's hashers promise nothing from one release to the next.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0 // never asked for: the whole digest is taken
    }
}
