//! `CONNECTION`, `CONNECTION/STREAM`, `CONNECTION/STREAM/PARTITION`: how a person names units.

use super::Failure;
use crate::host::Host;
use crate::store::{UnitKey, UnitRow};

/// Some of the units. A partition may hold slashes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    connection: Option<String>,
    stream: Option<String>,
    partition: Option<String>,
}

impl Selection {
    /// Reads what a person typed; none: everything.
    pub fn parse(text: Option<&str>) -> Selection {
        let mut parts = text.into_iter().flat_map(|text| text.splitn(3, '/'));
        let mut part = || {
            parts
                .next()
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
        };
        Selection {
            connection: part(),
            stream: part(),
            partition: part(),
        }
    }

    /// The connection, where one is named.
    pub fn connection(&self) -> Option<&str> {
        self.connection.as_deref()
    }

    /// Is this unit one of them?
    pub fn holds(&self, key: &UnitKey) -> bool {
        self.connection
            .as_ref()
            .is_none_or(|name| *name == key.connection)
            && self.stream.as_ref().is_none_or(|name| *name == key.stream)
            && (self.partition.is_none() || self.partition == key.partition)
    }

    /// The stored units that are meant.
    ///
    /// # Errors
    /// When something was named and there is no such unit: the names that there are come with the error.
    pub fn units(&self, host: &Host) -> Result<Vec<UnitRow>, Failure> {
        let mut units = Vec::new();
        let mut names = Vec::new();
        host.store.for_each_unit(&mut |unit| {
            if self.holds(&unit.key) {
                units.push(unit);
            } else if names.len() < 20 {
                names.push(unit.key.to_string());
            }
        })?;
        if units.is_empty() && self.connection.is_some() {
            let known = if names.is_empty() {
                "no unit is known yet: run `weir sync` or `weir run` first".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            return Err(Failure::Unknown(format!(
                "no unit is named {self}; {known}"
            )));
        }
        Ok(units)
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.connection, &self.stream, &self.partition];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        f.write_str(&parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(connection: &str, stream: &str, partition: Option<&str>) -> UnitKey {
        UnitKey {
            connection: connection.into(),
            stream: stream.into(),
            partition: partition.map(Into::into),
        }
    }

    #[test]
    fn a_name_selects_what_lies_below_it() {
        let unit = key("oss", "issues", Some("acme/tools"));
        for text in [
            None,
            Some("oss"),
            Some("oss/issues"),
            Some("oss/issues/acme/tools"),
        ] {
            assert!(Selection::parse(text).holds(&unit), "{text:?}");
        }
        for text in ["os", "oss/events", "oss/issues/acme", "shop"] {
            assert!(!Selection::parse(Some(text)).holds(&unit), "{text}");
        }
    }
}
