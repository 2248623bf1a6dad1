//! Why there is no component.

use std::io;
use std::path::PathBuf;

/// Why there is no component, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program cannot be started.
    #[error("cannot run {program}: {source}")]
    Start {
        /// The command line.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program has failed; what it had to say is on stderr.
    #[error("{program} failed ({status})")]
    Failed {
        /// The command line.
        program: String,
        /// How it ended.
        status: String,
    },
    /// cargo's messages are not what they were.
    #[error("cannot read cargo's message {line:?}: {why}")]
    Message {
        /// The message.
        line: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something has to be installed.
    #[error("{0}")]
    Missing(String),
    /// Not WebAssembly at all.
    #[error("not WebAssembly: {0}")]
    NotWasm(String),
    /// A module without the contract.
    #[error("the module cannot be made a component: {0}: does it call weir_sdk::export!?")]
    NotEncodable(String),
    /// A component for another host.
    #[error("it exports no weir:connector/connector@...: does it call weir_sdk::export!?")]
    NoConnector,
    /// It asks for what no connector gets.
    #[error("it imports {interface} ({functions}); a connector may only import weir:connector/log")]
    Import {
        /// The interface.
        interface: String,
        /// Its functions.
        functions: String,
    },
    /// A file that cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
