//! Calls with an effect at the vendor: each has a key of its own, stored before its first try.
//!
//! Promises: the key (a UUID, version 4) is durable before the call is made for the first time. Every later try of the same
//! step of the same walk carries it again, also after a crash. It is forgotten in the very transaction that stores the
//! answer, or when the step is given up for good; another request never carries it.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use weir_runtime::contract::{Body, Request, Target};

use super::call::CallFailed;
use super::run::Poll;
use crate::store::{StoreError, UnitId};
use crate::uuid;

/// The key of a call that is not answered for good, as stored.
#[derive(Serialize, Deserialize)]
struct Intent {
    /// Tells the call from others: its step and what it asks.
    call: String,
    /// The key.
    key: String,
}

impl Poll<'_> {
    /// The key of this call: the stored one, or a new one that is durable when this returns.
    pub(super) async fn write_key(
        &mut self,
        step: Option<&str>,
        request: &Request,
    ) -> Result<String, CallFailed> {
        let name = note(self.row.id, self.walk.number);
        let call = fingerprint(step, request);
        let stored = self.host.store.note(&name)?;
        let stored = stored.and_then(|bytes| serde_json::from_slice::<Intent>(&bytes).ok());
        let key = match stored.filter(|stored| stored.call == call) {
            Some(stored) => stored.key,
            None => {
                let key = uuid::v4(&mut *self.host.random.lock());
                let intent = Intent {
                    call,
                    key: key.clone(),
                };
                let bytes = serde_json::to_vec(&intent).unwrap_or_default();
                let kept = self.host.store.set_note(&name, Some(bytes));
                kept.await.unwrap_or(Err(StoreError::Closed))?;
                key
            }
        };
        self.write = Some(name);
        Ok(key)
    }
}

fn note(unit: UnitId, walk: u64) -> String {
    format!("write/{}/{walk}", unit.0)
}

fn fingerprint(step: Option<&str>, request: &Request) -> String {
    let mut hash = Sha256::new();
    let mut feed = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    feed(&[u8::from(step.is_some())]);
    feed(step.unwrap_or_default().as_bytes());
    feed(format!("{:?} {}", request.method, request.origin).as_bytes());
    match &request.target {
        Target::Path(target) | Target::Link(target) => feed(target.as_bytes()),
    }
    for (name, value) in &request.query {
        feed(name.as_bytes());
        feed(value.as_bytes());
    }
    match &request.body {
        None => {}
        Some(Body::Text(text)) => feed(text.as_bytes()),
        Some(Body::Bytes(bytes)) => feed(bytes),
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
