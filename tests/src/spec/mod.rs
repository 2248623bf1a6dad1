//! What a simulated vendor is like, as plain data that TOML and JSON can hold.
//!
//! Every field has a default, so a spec says only what is special about its vendor. Moments in a spec are
//! milliseconds since the vendor's start, so that one spec serves any clock.

mod collection;
mod faults;
mod limits;
mod writes;

use serde::{Deserialize, Serialize};

pub use collection::{
    Bound, CollectionSpec, Deletion, End, Envelope, EtagKind, Fields, Filter, IdKind, Order,
    PageSize, Paging, ResultCap, Total, Validators,
};
pub use faults::{FaultKind, FaultPlan, Outage, RandomFault, ScriptedFault, WaitForm, When};
pub use limits::{Counting, Dialect, LatencySpec, LimitSpec, QuotaCut};
pub use writes::{Lag, Op, Phase, Write, WritesSpec};

/// One vendor: one API with one clock, one set of credentials and quotas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VendorSpec {
    /// Its name: the `connection` of delivered lines that a judge expects, unless told otherwise.
    pub name: String,
    /// All chance follows from it.
    pub seed: u64,
    /// What its paths begin with (`/acme`), so that one server can play several vendors.
    pub base: String,
    /// The bearer tokens that it accepts; empty: anyone may call.
    pub tokens: Vec<String>,
    /// What can be listed.
    pub collections: Vec<CollectionSpec>,
    /// Its quotas, each counted by itself.
    pub limits: Vec<LimitSpec>,
    /// Times at which the quotas are smaller than usual.
    pub quota_cuts: Vec<QuotaCut>,
    /// A 304 costs no quota.
    pub free_not_modified: bool,
    /// How long answers take.
    pub latency: LatencySpec,
    /// What goes wrong, and when.
    pub faults: FaultPlan,
    /// Its own `Date` runs this many ms ahead of the true time.
    pub date_skew_ms: i64,
    /// Answers are compressed for clients that accept gzip.
    pub gzip: bool,
}

impl Default for VendorSpec {
    fn default() -> Self {
        VendorSpec {
            name: "acme".into(),
            seed: 1,
            base: String::new(),
            tokens: Vec::new(),
            collections: vec![CollectionSpec::default()],
            limits: Vec::new(),
            quota_cuts: Vec::new(),
            free_not_modified: true,
            latency: LatencySpec::default(),
            faults: FaultPlan::default(),
            date_skew_ms: 0,
            gzip: false,
        }
    }
}

/// A spec that describes no possible vendor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The text is not a spec.
    #[error("this is no vendor spec: {0}")]
    Syntax(String),
    /// A key has a value that makes no sense.
    #[error("vendor {vendor}: {key}: {problem}")]
    Value {
        /// The vendor's name.
        vendor: String,
        /// Where: `collections.orders.page_size`.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl VendorSpec {
    /// Reads a spec from TOML.
    pub fn from_toml(text: &str) -> Result<Self, SpecError> {
        toml::from_str(text).map_err(|error| SpecError::Syntax(error.to_string()))
    }

    /// Reads a spec from JSON.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        serde_json::from_str(text).map_err(|error| SpecError::Syntax(error.to_string()))
    }

    /// Refuses what no vendor could be: two collections at one path, a page of no records, a probability over 1.
    pub fn check(&self) -> Result<(), SpecError> {
        let mut paths = Vec::new();
        for collection in &self.collections {
            let at = |key: &str| format!("collections.{}.{key}", collection.name);
            if paths.contains(&&collection.path) {
                return Err(self.error(at("path"), "another collection has the same path"));
            }
            paths.push(&collection.path);
            if !collection.path.starts_with('/') {
                return Err(self.error(at("path"), "must begin with '/'"));
            }
            if collection.page_size.default == 0
                || collection.page_size.max < collection.page_size.default
            {
                return Err(self.error(at("page_size"), "needs 0 < default <= max"));
            }
            if collection.fields.id.is_empty() || collection.fields.stamp.is_empty() {
                return Err(self.error(at("fields"), "id and stamp need a name"));
            }
            if collection.granularity_ms < 1 {
                return Err(self.error(at("granularity_ms"), "must be at least 1"));
            }
            for (key, share) in [
                ("short_pages", collection.short_pages),
                ("empty_pages", collection.empty_pages),
                ("writes.edits", collection.writes.edits),
                ("writes.deletes", collection.writes.deletes),
                ("writes.ties", collection.writes.ties),
                ("writes.reissues", collection.writes.reissues),
                ("writes.late_edits", collection.writes.late_edits),
                ("writes.lag.slow", collection.writes.lag.slow),
            ] {
                if !(0.0..=1.0).contains(&share) {
                    return Err(self.error(at(key), "is a share and must lie in 0..=1"));
                }
            }
            if !collection.writes.per_second.is_finite() || collection.writes.per_second < 0.0 {
                return Err(self.error(at("writes.per_second"), "must be a number of at least 0"));
            }
        }
        for limit in &self.limits {
            if limit.window_ms < 1 {
                return Err(self.error(
                    format!("limits.{}.window_ms", limit.name),
                    "must be at least 1",
                ));
            }
        }
        for fault in &self.faults.random {
            if !(0.0..=1.0).contains(&fault.probability) {
                return Err(self.error("faults.random.probability".into(), "must lie in 0..=1"));
            }
        }
        Ok(())
    }

    fn error(&self, key: String, problem: &str) -> SpecError {
        SpecError::Value {
            vendor: self.name.clone(),
            key,
            problem: problem.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_toml_and_json() {
        let mut spec = VendorSpec::default();
        spec.limits.push(LimitSpec::default());
        spec.faults
            .random
            .push(RandomFault::new(0.1, FaultKind::Hang));
        spec.faults.script.push(ScriptedFault {
            when: When::Calls { from: 2, to: 3 },
            collection: Some("orders".into()),
            fault: FaultKind::too_many(WaitForm::Seconds, 3000),
        });
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(VendorSpec::from_json(&json).unwrap(), spec);
        let toml = toml::to_string(&spec).unwrap();
        assert_eq!(VendorSpec::from_toml(&toml).unwrap(), spec);
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let error = VendorSpec::from_toml("sede = 3").unwrap_err();
        assert!(error.to_string().contains("sede"), "{error}");
    }

    #[test]
    fn what_no_vendor_could_be_is_refused() {
        let mut spec = VendorSpec::default();
        spec.check().unwrap();
        spec.collections.push(CollectionSpec::default());
        assert!(spec.check().unwrap_err().to_string().contains("same path"));
        spec.collections.pop();
        spec.collections[0].page_size.default = 0;
        assert!(spec.check().is_err());
    }
}
