//! From the bytes of a file to a connector that can be called.
//!
//! A file passes these gates, the cheap ones first: size, form, world, compilation, types, `describe`. Each
//! refusal says what is wrong with the file and what its author or user can do.

mod inspect;

use std::path::PathBuf;

use wit_component::ComponentEncoder;

pub(crate) use inspect::{Form, inspect};

use crate::contract::SUPPORTED_VERSIONS;
use crate::error::CallErrorKind;
use crate::guest::offered;
use crate::limits::MESSAGE;
use crate::text::tame;

/// A file that is no usable connector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {refusal}", file.display())]
pub struct LoadError {
    /// The file, as the caller named it.
    pub file: PathBuf,
    /// What is wrong with it.
    pub refusal: Refusal,
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing in it.
    #[error("the file is empty; build the connector again, or wait until it has been copied")]
    Empty,
    /// It ends in the middle.
    #[error(
        "the file is cut off after {bytes} bytes; copy it again, and rename it into place when it is whole"
    )]
    Truncated {
        /// How much there is.
        bytes: usize,
    },
    /// Something else altogether.
    #[error(
        "this is no WebAssembly file{hint}; a connector is a .wasm file, as `weir build` makes"
    )]
    NotWasm {
        /// What it looks like instead.
        hint: &'static str,
    },
    /// Machine code.
    #[error(
        "this is compiled code (.cwasm), which weir never takes from a file, since nothing could check what it \
         does; use the .wasm file that it was made from"
    )]
    Precompiled,
    /// Larger than a connector may be.
    #[error(
        "the file has {bytes} bytes and may have {allowed}; build it optimised and stripped (`weir build` does)"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        allowed: usize,
    },
    /// Damaged, or with features that are switched off.
    #[error(
        "this is no valid WebAssembly: {0}; build the connector again, with default features only"
    )]
    Malformed(String),
    /// A plain core module.
    #[error(
        "this is a core module without a contract in it; in Rust, depend on weir-sdk and call \
         weir_sdk::export!(YourConnector), in another language turn it into a component that exports {} (`weir build` \
         does); `weir new` makes an example",
        wanted()
    )]
    NoContract,
    /// Made for the first version of WASI.
    #[error(
        "this module was built for WASI preview 1 (`wasm32-wasip1`); build it for `wasm32-unknown-unknown` or \
         `wasm32-wasip2`"
    )]
    OldWasi,
    /// A component for some other host.
    #[error(
        "this is no weir connector: it does not export {}; it exports {}. `weir new` makes one that works",
        wanted(),
        list(exports)
    )]
    OtherWorld {
        /// What it exports instead.
        exports: Vec<String>,
    },
    /// It wants things that a connector cannot have.
    #[error(
        "it imports {}, which no connector gets; a connector has no network, files or clock of its own: it returns \
         requests, and weir sends them",
        list(imports)
    )]
    ForeignImports {
        /// What it asks for.
        imports: Vec<String>,
    },
    /// A version of the contract that this host does not know.
    #[error(
        "it was built for version {asked} of weir:connector, and this weir runs {}; {}",
        SUPPORTED_VERSIONS.join(", "),
        remedy(asked)
    )]
    UnsupportedVersion {
        /// The version that the file names.
        asked: String,
    },
    /// The contract's interface without all of its functions.
    #[error(
        "it does not export {} of weir:connector/connector{}; weir:connector {} has {}: {}",
        list(missing),
        version.as_ref().map(|version| format!("@{version}")).unwrap_or_default(),
        SUPPORTED_VERSIONS.join(", "),
        FUNCTIONS.join(", "),
        if missing.len() == FUNCTIONS.len() {
            "in Rust, call weir_sdk::export!(YourConnector) once at the crate's root, then run `weir build`"
        } else {
            "build it against the wit/ of this version, unchanged (docs/wit.md), then run `weir build`"
        }
    )]
    MissingExports {
        /// The version that the file names, where it names one.
        version: Option<String>,
        /// The functions.
        missing: Vec<String>,
    },
    /// The right names with other types behind them.
    #[error(
        "its functions are not those of weir:connector {version}: {detail}; build it against the wit/ of this \
         version, unchanged"
    )]
    WrongTypes {
        /// The version that the file names.
        version: &'static str,
        /// The first difference.
        detail: String,
    },
    /// A core module that cannot be made a component.
    #[error("the module cannot be made a component: {0}; build it with the SDK of this version")]
    NotEncodable(String),
    /// The compiler refuses it.
    #[error("it cannot be compiled: {0}")]
    NotCompilable(String),
    /// It cannot even say what it is.
    #[error("its describe function gave no answer: {0}")]
    Describe(CallErrorKind),
    /// `describe` reported a fault.
    #[error("its describe function answers with a fault: {0}")]
    DescribeFault(String),
    /// What it says of itself breaks a rule.
    #[error("what it says of itself is invalid: {0}; this has to be mended in the connector")]
    InvalidDescriptor(String),
}

/// The contract's functions.
const FUNCTIONS: [&str; 4] = ["describe", "partitions", "build-request", "read-response"];

/// Refuses a file that lacks some of the contract's functions.
pub(crate) fn check_functions<'n>(
    version: Option<&str>,
    exported: impl IntoIterator<Item = &'n str>,
) -> Result<(), Refusal> {
    let exported: Vec<&str> = exported.into_iter().collect();
    let missing = FUNCTIONS.iter().filter(|name| !exported.contains(name));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::MissingExports {
        version: version.map(|version| tame(version, 40)),
        missing,
    })
}

/// The export that makes a component a connector.
fn wanted() -> String {
    let versions: Vec<_> = SUPPORTED_VERSIONS
        .iter()
        .map(|version| format!("weir:connector/connector@{version}"))
        .collect();
    versions.join(" or ")
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(|name| tame(name, 120))
        .collect::<Vec<_>>()
        .join(", ");
    if names.is_empty() {
        text.push_str("nothing");
    } else if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Versions are compared number by number; what is no version counts as old.
fn remedy(asked: &str) -> &'static str {
    let numbers = |version: &str| -> Vec<u64> {
        version
            .split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    let newest = SUPPORTED_VERSIONS.last().copied().unwrap_or_default();
    if numbers(asked) > numbers(newest) {
        "use a newer weir, or a connector built for one of these versions"
    } else {
        "build the connector with the SDK of this version: put the .weir/ of a connector that this weir's `weir new` makes in \
         place of its own, then run `weir build`"
    }
}

/// Checks what a component wants and offers, by name; returns the version of the contract that it is for.
pub(crate) fn check_world(imports: &[String], exports: &[String]) -> Result<&'static str, Refusal> {
    let asked = exports
        .iter()
        .find_map(|name| name.strip_prefix("weir:connector/connector"))
        .map(|rest| rest.strip_prefix('@').unwrap_or("(none)"));
    let Some(asked) = asked else {
        return Err(Refusal::OtherWorld {
            exports: exports.to_vec(),
        });
    };
    let Some(version) = SUPPORTED_VERSIONS.iter().find(|version| **version == asked) else {
        return Err(Refusal::UnsupportedVersion {
            asked: tame(asked, 40),
        });
    };
    let foreign: Vec<_> = imports
        .iter()
        .filter(|name| !contract_import(name, version) && !offered(name))
        .cloned()
        .collect();
    if !foreign.is_empty() {
        return Err(Refusal::ForeignImports { imports: foreign });
    }
    Ok(version)
}

fn contract_import(name: &str, version: &str) -> bool {
    name.strip_prefix("weir:connector/")
        .and_then(|rest| rest.strip_suffix(version))
        .is_some_and(|interface| interface == "log@" || interface == "types@")
}

/// Makes a component of a core module that has the contract embedded.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, Refusal> {
    ComponentEncoder::default()
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| Refusal::NotEncodable(tame(&format!("{error:#}"), MESSAGE)))
}
