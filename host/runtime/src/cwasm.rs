//! The one unsafe step of weir: mapping compiled code.
//!
//! # Safety
//!
//! Compiled code (`.cwasm`) is machine code. wasmtime checks that it was made by the same version and with the
//! same settings, and nothing else: whoever can choose its bytes can run anything in this process. So it is
//! mapped only if all of this holds:
//!
//! 1. The path lies in a cache directory that belongs to the user who runs the host and that nobody else can
//!    enter (mode 0700). [`Private`](crate::cache::Private) is made only after that check.
//! 2. The bytes have the SHA-256 that this host wrote beside the file when it had compiled it, over the bytes
//!    that are mapped. It guards against damage (a full disk, a crash, a bad sector), not against a person who
//!    can write as this user: such a person can replace the host itself.
//! 3. A file is never changed once it has its name: it is written under another name, flushed and renamed, and
//!    replaced only by another rename. A mapping keeps the file that it was made from.
//!
//! Users' files never come here: a `.cwasm` in the directory of connectors is refused by its first bytes.

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::cache::Verified;

/// Maps a compiled component.
///
/// # Errors
///
/// It was made by another version of wasmtime or with other settings, or the file has gone.
#[allow(unsafe_code, reason = "the safety section above")]
pub(crate) fn map(engine: &Engine, file: &Verified) -> wasmtime::Result<Component> {
    // SAFETY: `Verified` exists only for a file of a private directory whose bytes this host wrote; see above.
    unsafe { Component::deserialize_file(engine, file.path()) }
}
