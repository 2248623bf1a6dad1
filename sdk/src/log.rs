//! The one thing that a connector may ask of the host: to be heard in its log.
//!
//! The host shortens lines to 1 KiB and drops what comes too fast. Natively the lines go to stderr.

pub use crate::bindings::weir::connector::log::Level;

/// Writes one line.
///
/// ```
/// # use weir_sdk::prelude::*;
/// log::write(log::Level::Info, "12 orders are new");
/// ```
pub fn write(level: Level, message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::weir::connector::log::write(level, message);
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{level:?}: {message}");
}

/// For whoever writes the connector.
///
/// ```
/// # use weir_sdk::prelude::*;
/// log::debug("page 3 of 9");
/// ```
pub fn debug(message: impl AsRef<str>) {
    write(Level::Debug, message.as_ref());
}

/// Worth knowing.
///
/// ```
/// # use weir_sdk::prelude::*;
/// log::info("the vendor has moved");
/// ```
pub fn info(message: impl AsRef<str>) {
    write(Level::Info, message.as_ref());
}

/// Something that a person should look at.
///
/// ```
/// # use weir_sdk::prelude::*;
/// log::warn("the vendor calls this field deprecated");
/// ```
pub fn warn(message: impl AsRef<str>) {
    write(Level::Warn, message.as_ref());
}

/// Says in the host's log why a connector panicked; the trap that follows says only that it did.
pub(crate) fn report_panics() {
    #[cfg(target_family = "wasm")]
    std::panic::set_hook(Box::new(|panic| warn(panic.to_string())));
}
