//! What is stored of a credential, sealed.

use serde::{Deserialize, Serialize};
use weir_rules::model::{Duration, Timestamp};

use super::Io;
use super::answer::Tokens;
use super::seal::SealError;
use crate::store::StoreError;

/// A credential's state. It has no `Debug`: most of it is secret.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// What renews it.
    pub(super) refresh: Option<String>,
    /// What calls are signed with.
    pub(super) access: Option<String>,
    /// Until when that is good, by this machine's clock.
    pub(super) expires: Option<Timestamp>,
    /// How long it was good for, in ms.
    pub(super) lifetime: Option<Duration>,
    /// When a renewal was sent whose answer has not been seen: the vendor may have put another refresh token in the place
    /// of this one.
    pub(super) in_doubt: Option<Timestamp>,
}

/// Why a state could not be read or stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("what is stored is not of this version: {0}")]
    Form(#[from] serde_json::Error),
}

impl Kept {
    /// What the vendor gave at `asked`, in the place of what was: a vendor that names no new refresh token leaves the old
    /// one good.
    pub(super) fn renewed(&self, tokens: &Tokens, asked: Timestamp) -> Kept {
        let lifetime = tokens.lifetime;
        Kept {
            refresh: tokens.refresh.clone().or_else(|| self.refresh.clone()),
            access: Some(tokens.access.clone()),
            // Counted from before it was asked for: never longer than the vendor meant it.
            expires: lifetime.map(|ms| asked.saturating_add_unsigned(ms)),
            lifetime,
            in_doubt: None,
        }
    }

    /// Reads what is stored; none where there is nothing.
    pub(super) fn load(io: &Io, key: &str) -> Result<Option<Kept>, KeepError> {
        let Some(sealed) = io.store.credential(key)? else {
            return Ok(None);
        };
        Ok(serde_json::from_slice(&io.vault.open(key, &sealed)?)?)
    }

    /// Stores it; done when it is durable.
    pub(super) async fn save(&self, io: &Io, key: &str) -> Result<(), KeepError> {
        let sealed = io.vault.seal(key, &serde_json::to_vec(self)?)?;
        let stored = io.store.set_credential(key, Some(sealed));
        Ok(stored.await.unwrap_or(Err(StoreError::Closed))?)
    }
}
