//! The socket's address: a path of which the system takes little more than 100 bytes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::socket_path;

/// The longest path that every system takes as the address of a socket (macOS: 104 bytes with the ending zero).
const LONGEST: usize = 103;

/// By which path the socket is bound and reached.
pub(super) struct Address {
    path: PathBuf,
    /// The data directory, where the path leads through it: held open for as long as the path is used.
    _directory: Option<File>,
}

impl Address {
    /// The socket of this data directory. Where its path is too long, one that leads through a handle of the directory.
    ///
    /// # Errors
    /// When that directory can't be opened.
    pub(super) fn of(data: &Path) -> io::Result<Address> {
        let path = socket_path(data);
        if path.as_os_str().len() <= LONGEST {
            return Ok(Address {
                path,
                _directory: None,
            });
        }
        let directory = File::open(data)?;
        Ok(Address {
            path: through(&directory, path),
            _directory: Some(directory),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(target_os = "linux")]
fn through(directory: &File, path: PathBuf) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    let name = path.file_name().unwrap_or_default();
    Path::new("/proc/self/fd")
        .join(directory.as_raw_fd().to_string())
        .join(name)
}

/// Elsewhere there is no such way, and the system's error says that the path is too long.
#[cfg(not(target_os = "linux"))]
fn through(_: &File, path: PathBuf) -> PathBuf {
    path
}
