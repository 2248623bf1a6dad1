//! Steps, cursors and configs: typed for the author, JSON text for the host.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Fault;

/// The text that the host stores.
pub(crate) fn write<T: Serialize>(what: &str, value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| {
        Fault::permanent(format!("the {what} cannot be written as JSON: {error}")).code("codec")
    })
}

/// A stored position. One that cannot be read (another version of the connector wrote it) is a lost position: the host
/// walks the window again instead of guessing.
pub(crate) fn read_position<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        Fault::position_lost(format!(
            "the stored {what} is not one of this version: {error}"
        ))
        .code("codec")
    })
}

/// The connection's config, which the host has already checked against the schema.
pub(crate) fn read_config<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        Fault::permanent(format!("the config is not usable: {error}")).code("config")
    })
}
