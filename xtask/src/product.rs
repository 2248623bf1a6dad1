//! What the commands run: the host's binary and the connectors, built first where that is needed.

use std::path::PathBuf;

use anyhow::Context;

use crate::build;

/// Names a binary to run as it is, with the connectors as they are; nothing is built then.
const BINARY_VARIABLE: &str = "WEIR_BIN";

/// The host and its connectors.
pub(crate) struct Product {
    /// The binary.
    pub(crate) weir: PathBuf,
    /// The directory of the connectors.
    pub(crate) connectors: PathBuf,
}

/// Builds what is missing or has changed, and says what it is doing.
pub(crate) fn product() -> anyhow::Result<Product> {
    let connectors = build::directory();
    if let Some(weir) = std::env::var_os(BINARY_VARIABLE) {
        let weir = std::path::absolute(&weir)?;
        weir.metadata()
            .with_context(|| format!("{BINARY_VARIABLE}={}", weir.display()))?;
        return Ok(Product { weir, connectors });
    }
    eprintln!("building the connectors ...");
    build::connectors()?;
    eprintln!("building weir (some minutes the first time) ...");
    let weir = build::host()?;
    Ok(Product { weir, connectors })
}
