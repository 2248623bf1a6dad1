//! What can go wrong, and whose fault it is.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use crate::guest::{MemoryRefused, TimeUp};
use crate::limits::MESSAGE;
use crate::text::tame;

/// A function of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `describe`
    Describe,
    /// `partitions`
    Partitions,
    /// `build-request`
    BuildRequest,
    /// `read-response`
    ReadResponse,
}

impl Function {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Function::Describe => "describe",
            Function::Partitions => "partitions",
            Function::BuildRequest => "build-request",
            Function::ReadResponse => "read-response",
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The connector's author has to act.
    Connector,
    /// The machine or weir itself.
    Host,
}

/// A call that gave no result: neither a value nor a fault of the vendor.
///
/// Its instance is gone; the next call gets a fresh one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connector {connector}: {function}: {kind}")]
pub struct CallError {
    /// The connector's name.
    pub connector: Arc<str>,
    /// What was called.
    pub function: Function,
    /// What happened.
    pub kind: CallErrorKind,
}

impl CallError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self.kind {
            CallErrorKind::Host { .. } => Blame::Host,
            _ => Blame::Connector,
        }
    }
}

/// What ended a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallErrorKind {
    /// The connector's code gave up: a panic, a stack overflow, a broken result.
    #[error("it crashed: {reason}{}{}", last_words(said), backtrace(frames))]
    Trap {
        /// The trap's own words.
        reason: String,
        /// The last warning that it logged, or the last line that it printed: a panic's message, most often.
        said: Option<String>,
        /// The innermost functions, if the file has names.
        frames: Vec<String>,
    },
    /// It used up its time: probably an endless loop.
    #[error("out of time: {detail}; a call may take {allowed_ms} ms")]
    OutOfTime {
        /// How long it ran.
        detail: String,
        /// The limit, in ms.
        allowed_ms: u64,
    },
    /// It wanted more memory than it may have.
    #[error("out of memory: it asked for {wanted} bytes and may have {allowed}")]
    OutOfMemory {
        /// Bytes that it would have had.
        wanted: usize,
        /// Bytes that it may have.
        allowed: usize,
    },
    /// Its result is larger than a result may be.
    #[error("too much returned: a result may hold {allowed} bytes")]
    TooMuchReturned {
        /// Bytes that it may return.
        allowed: usize,
    },
    /// Its result breaks a rule of the contract.
    #[error("invalid result: {0}")]
    Invalid(String),
    /// Not the connector's doing.
    #[error("the host could not run it: {reason}")]
    Host {
        /// What the host lacked.
        reason: String,
    },
}

fn last_words(said: &Option<String>) -> String {
    said.as_ref()
        .map(|said| format!("; its last words: {said}"))
        .unwrap_or_default()
}

fn backtrace(frames: &[String]) -> String {
    if frames.is_empty() {
        String::new()
    } else {
        format!(" (in {})", frames.join(" < "))
    }
}

/// Functions of a backtrace worth showing: the rest is the way in.
const FRAMES: usize = 6;

/// Sorts what wasmtime reports; `allowed_ms` and `returned` are the limits of this call, `said` its last words.
pub(crate) fn classify(
    error: &wasmtime::Error,
    allowed_ms: u64,
    returned: usize,
    said: Option<String>,
) -> CallErrorKind {
    if let Some(time) = error.downcast_ref::<TimeUp>() {
        return CallErrorKind::OutOfTime {
            detail: time.to_string(),
            allowed_ms,
        };
    }
    if let Some(memory) = error.downcast_ref::<MemoryRefused>() {
        return CallErrorKind::OutOfMemory {
            wanted: memory.wanted,
            allowed: memory.allowed,
        };
    }
    if let Some(full) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        return CallErrorKind::Host {
            reason: full.to_string(),
        };
    }
    let root = error.root_cause().to_string();
    // wasmtime keeps this error's type to itself; a test watches the wording.
    if root.contains("fuel allocated for hostcalls has been exhausted") {
        return CallErrorKind::TooMuchReturned { allowed: returned };
    }
    let reason = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => {
            "it panicked or ran into code that cannot be reached (unreachable)".to_owned()
        }
        Some(trap) => trap.to_string(),
        None => tame(&root, MESSAGE),
    };
    let frames = error
        .downcast_ref::<WasmBacktrace>()
        .map(|trace| {
            trace
                .frames()
                .iter()
                .filter_map(|frame| frame.func_name())
                .take(FRAMES)
                .map(|name| tame(name, 80))
                .collect()
        })
        .unwrap_or_default();
    CallErrorKind::Trap {
        reason,
        said,
        frames,
    }
}

/// The runtime could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// wasmtime refuses to run here.
    #[error("this machine cannot run WebAssembly: {0}")]
    Engine(String),
    /// The system grants no more threads.
    #[error("cannot start a thread for connectors: {0}; raise the limit of threads (ulimit -u)")]
    Thread(#[source] std::io::Error),
    /// A limit lies outside what the runtime can keep.
    #[error("{0}")]
    Limit(String),
    /// The compile cache cannot be used.
    #[error("the compile cache {}: {reason}", dir.display())]
    Cache {
        /// The directory.
        dir: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}
