//! The authorisation code with PKCE (RFC 7636), by a loopback redirect (RFC 8252).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::door::Door;
use super::{Brought, LoginError, denied};
use crate::oauth::Io;
use crate::oauth::answer;
use crate::oauth::call::post;
use crate::oauth::client::Client;
use crate::oauth::seal::{SealError, random};

pub(super) async fn sign_in(
    io: &Io,
    client: &Client,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Brought, LoginError> {
    let mut page = client.authorize.clone().ok_or(LoginError::NoPage)?;
    let door = Door::open(client.redirect.as_ref()).await?;
    let (state, verifier) = (unguessable()?, unguessable()?);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let scopes = client.scopes.join(" ");
    {
        let mut query = page.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", client.id.reveal())
            .append_pair("redirect_uri", door.redirect().as_str())
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes);
        }
        for (name, value) in &client.params {
            query.append_pair(name, value);
        }
    }
    tell(format!(
        "open this in a browser on this machine, and sign in there:\n{page}"
    ));
    let redirect = door.redirect().clone();
    let code = door.answer(&state).await?;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", redirect.as_str()),
        ("code_verifier", verifier.as_str()),
    ];
    let asked = io.clock.wall();
    let response = post(io, client, &client.token, &form).await?;
    match answer::read(&response) {
        Ok(tokens) => Ok(Brought { tokens, asked }),
        Err(refusal) => Err(denied(client, &refusal)),
    }
}

/// 43 characters that nobody can guess.
fn unguessable() -> Result<String, SealError> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}
