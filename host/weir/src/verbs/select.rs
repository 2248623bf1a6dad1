//! `CONNECTION`, `CONNECTION/STREAM`, `CONNECTION/STREAM/PARTITION`: how a person names units.

use std::collections::BTreeSet;

use super::Failure;
use crate::config;
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
        let mut others = Others::default();
        host.store.for_each_unit(&mut |unit| {
            if self.holds(&unit.key) {
                units.push(unit);
            } else {
                others.add(self, &unit.key);
            }
        })?;
        if units.is_empty() && self.connection.is_some() {
            let none = "no unit is known yet: run `weir sync` or `weir run` first";
            return Err(others.failure(self, none));
        }
        Ok(units)
    }

    /// The unit's name, as far down as this selection goes.
    fn alike(&self, key: &UnitKey) -> String {
        match (&self.stream, &self.partition) {
            (None, _) => key.connection.clone(),
            (Some(_), None) => format!("{}/{}", key.connection, key.stream),
            (Some(_), Some(_)) => key.to_string(),
        }
    }
}

/// Names to offer when a selection finds nothing.
#[derive(Default)]
pub(super) struct Others {
    names: BTreeSet<String>,
}

impl Others {
    /// Names that are looked through for a near one; there may be 100,000 units.
    const LOOKED_AT: usize = 1_000;
    const SHOWN: usize = 20;

    pub(super) fn add(&mut self, selection: &Selection, key: &UnitKey) {
        if self.names.len() < Self::LOOKED_AT {
            self.names.insert(selection.alike(key));
        }
    }

    /// What to say; `none` where there is nothing to offer.
    pub(super) fn failure(&self, selection: &Selection, none: &str) -> Failure {
        let wanted = selection.to_string();
        let shown: Vec<&str> = self
            .names
            .iter()
            .take(Self::SHOWN)
            .map(String::as_str)
            .collect();
        let mut text = format!("no unit is named {wanted}");
        match config::nearest(&wanted, self.names.iter().map(String::as_str)) {
            Some(near) => text.push_str(&format!(
                ": did you mean {near}? There are: {}",
                shown.join(", ")
            )),
            None if shown.is_empty() => text.push_str(&format!(": {none}")),
            None => text.push_str(&format!(": there are: {}", shown.join(", "))),
        }
        if self.names.len() > Self::SHOWN {
            text.push_str(", ...");
        }
        Failure::Unknown(text)
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

    #[test]
    fn what_is_misspelt_comes_with_the_nearest_name_of_its_kind() {
        let say = |wanted: &str| {
            let selection = Selection::parse(Some(wanted));
            let mut others = Others::default();
            for stream in ["issues", "events"] {
                others.add(&selection, &key("acme", stream, None));
            }
            others.failure(&selection, "none").to_string()
        };
        assert_eq!(
            say("acmee"),
            "no unit is named acmee: did you mean acme? There are: acme"
        );
        assert_eq!(
            say("acme/isues"),
            "no unit is named acme/isues: did you mean acme/issues? There are: acme/events, acme/issues"
        );
        assert_eq!(
            Others::default()
                .failure(&Selection::parse(Some("x")), "none")
                .to_string(),
            "no unit is named x: none"
        );
    }
}
