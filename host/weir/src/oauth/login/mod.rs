//! A person signs in: by a browser on this machine, or by a code that is entered on another one.
//!
//! Promises: authorisation codes are bound to this sign-in (PKCE with S256, and a state that nobody can guess); the
//! answer is taken on the loopback interface alone, once; it ends when the person has taken too long, or has left. What
//! the sign-in brought is stored before it is used.

mod browser;
mod device;
mod door;

use std::sync::Arc;

use weir_rules::model::{Duration, Timestamp};

use super::answer::{Refusal, Tokens};
use super::client::Client;
use super::held::Held;
use super::seal::SealError;
use crate::config::Grant;
use crate::http::TransportError;

/// How a person signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In a browser on this machine, whose answer comes back by a loopback address.
    Browser,
    /// In any browser, by entering a code.
    Device,
}

/// What a sign-in has brought, as far as it may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// How long the access token is good for, in ms; none: the vendor does not say.
    pub lifetime: Option<Duration>,
    /// It renews itself.
    pub renews: bool,
    /// What it may be used for, where the vendor says so.
    pub scope: Option<String>,
}

/// Why nobody has signed in. No text holds a code or a token.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The connection itself is not in order.
    #[error("{0}")]
    NotReady(String),
    /// The app proves itself by its secret.
    #[error("grant = \"client-credentials\" needs no sign-in: the client's secret is all")]
    NoPerson,
    /// The page is not known.
    #[error(
        "the vendor's sign-in page is not known: set authorize_url in auth.oauth2, or device_url for `--device`"
    )]
    NoPage,
    /// Where to get a code is not known.
    #[error("where the vendor gives out device codes is not known: set device_url in auth.oauth2")]
    NoDevice,
    /// No way back.
    #[error(
        "cannot listen on {address} for the vendor's answer: {source}: is another `weir login` waiting there?"
    )]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The vendor, or the person at its page, said no.
    #[error("the sign-in was refused: {0}")]
    Denied(String),
    /// No answer.
    #[error("the sign-in could not be completed: {0}")]
    Call(#[from] TransportError),
    /// An answer that says too little.
    #[error("{place} answered {detail}")]
    Answer {
        /// The URL, without its query.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// Too slow.
    #[error("nobody signed in in time: begin again with `weir login`")]
    TooLate,
    /// What it brought could not be stored.
    #[error("the sign-in could not be stored: {0}")]
    Keep(String),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] SealError),
}

/// Lets a person sign in, and keeps what that brings. `tell` shows the person what to do.
///
/// # Errors
/// [`LoginError`]
pub async fn sign_in(
    held: &Arc<Held>,
    client: &Arc<Client>,
    way: Way,
    tell: &(dyn Fn(String) + Sync),
) -> Result<SignedIn, LoginError> {
    if client.grant == Grant::ClientCredentials {
        return Err(LoginError::NoPerson);
    }
    let io = held.io();
    let Brought { tokens, asked } = match way {
        Way::Browser => browser::sign_in(io, client, tell).await?,
        Way::Device => device::sign_in(io, client, tell).await?,
    };
    let signed_in = SignedIn {
        lifetime: tokens.lifetime,
        renews: tokens.refresh.is_some(),
        scope: tokens.scope.clone(),
    };
    held.accept(client, &tokens, asked)
        .await
        .map_err(|trouble| LoginError::Keep(trouble.fault.message))?;
    Ok(signed_in)
}

struct Brought {
    tokens: Tokens,
    /// When they were asked for.
    asked: Timestamp,
}

/// A refusal in words, with the client's own secrets masked.
fn denied(client: &Client, refusal: &Refusal) -> LoginError {
    let text = match refusal.words.as_str() {
        "" => refusal.code.clone(),
        words => format!("{}: {words}", refusal.code),
    };
    LoginError::Denied(client.redactor().mask(&text).into_owned())
}
