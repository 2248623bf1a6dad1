//! Credentials that expire: tokens by OAuth 2, renewed by the host and kept over restarts.
//!
//! ```text
//! call ─▶ access token good? ─▶ sign the call
//!              │ no: soon over, or the vendor has refused it
//!              ▼ one at a time for all that share the credential
//!         token URL ─▶ answer ─▶ sealed into the store ─▶ used from now on
//!              └─▶ temporary: rest, then again     └─▶ refused for good: the connection needs a sign-in
//! ```
//!
//! Promises:
//! - One refresh at a time for everyone who shares a credential; who comes meanwhile waits for it and uses what it
//!   brought. It runs to its end even when nobody waits for it any more.
//! - A token is renewed before it runs out, so also before the first call after a long wait.
//! - What the vendor gave is durable before it is used. Nothing is asked of the vendor while it could not be stored.
//! - Of an answer that was lost on its way the old refresh token is tried once more. When the vendor refuses it then, the
//!   text says what most likely happened.
//! - A token endpoint that is down, slow or busy never makes a sign-in necessary.
//! - Tokens stand in no log, row, error or text. In the store they are sealed with a key that lies beside it, in a file
//!   for its owner alone; whoever has both has the tokens.
//!
//! Refuses: a token URL that is not https (loopback aside, or with `allow_http`), redirects of it, tokens that are bound
//! to a key (DPoP, MAC), and a key file that other users may read.
//!
//! | file | job |
//! | --- | --- |
//! | `client` | configuration and descriptor put together: who asks, where, for what |
//! | `answer` | what a token endpoint's answer means: pure |
//! | `call` | one call to a token endpoint |
//! | `held` | one credential: what it is now, and its renewal |
//! | `kept` | what is stored of it |
//! | `seal` | encryption at rest |
//! | `login` | a person signs in: by browser or by device code |

mod answer;
mod call;
mod client;
mod held;
mod kept;
pub mod login;
mod seal;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::http::{CallLimits, Transport};
use crate::random::Random;
use crate::store::Store;

pub use client::{Client, ClientError, Setting};
pub use held::{Access, Held, Trouble};
pub use seal::{KeySource, SealError};

use seal::Vault;

/// What one token call may take at most: a poll that waits for it holds a lease.
const CALL: Duration = Duration::from_secs(30);
/// Bytes of a token endpoint's answer.
const BODY: usize = 256 << 10;

/// What token calls need of the host.
pub(crate) struct Io {
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    store: Arc<dyn Store>,
    transport: Arc<dyn Transport>,
    vault: Vault,
    limits: CallLimits,
    user_agent: String,
}

/// All credentials that expire, by what tells them apart.
pub struct Keyring {
    io: Arc<Io>,
    held: Mutex<HashMap<String, Arc<Held>>>,
}

impl Keyring {
    /// A keyring that reads nothing yet.
    pub fn new(
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        store: Arc<dyn Store>,
        transport: Arc<dyn Transport>,
        key: KeySource,
        settings: &crate::config::Host,
    ) -> Keyring {
        let timeout = settings.timeout;
        let total = timeout.total.min(CALL);
        let limits = CallLimits {
            connect: timeout.connect.min(total),
            idle: timeout.idle.min(total),
            total,
            body: BODY,
        };
        Keyring {
            io: Arc::new(Io {
                clock,
                random,
                store,
                transport,
                vault: Vault::new(key),
                limits,
                user_agent: settings.user_agent.clone(),
            }),
            held: Mutex::default(),
        }
    }

    /// The credential of that client: the same one for everybody who shares it.
    pub fn held(&self, client: &Client) -> Arc<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.entry(client.key().to_owned())
            .or_insert_with(|| Arc::new(Held::new(client.key().to_owned(), self.io.clone())))
            .clone()
    }
}
