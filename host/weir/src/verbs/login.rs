//! `weir login`: a person signs in for a connection, and for all that share its credential.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{Caller, Failure, no_connection, resume};
use crate::control::{Reply, Said};
use crate::host::Host;
use crate::oauth::login::{LoginError, SignedIn, Way, sign_in};

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoggedIn {
    connection: String,
    /// How long the access token is good for, in ms; none: the vendor does not say.
    lifetime: Option<u64>,
    /// It renews itself.
    renews: bool,
    /// What it may be used for, where the vendor says so.
    scope: Option<String>,
    /// The connections that are polled again.
    resumed: Vec<String>,
    /// Why one of them still is not, where it is not.
    not_ready: Option<String>,
}

/// How often a person who waits is told so: whoever hears nothing for long may think that nobody is there.
const REMINDER: Duration = Duration::from_secs(5);

/// Lets a person sign in within `wait` ms, then resumes every connection of that credential.
pub(super) async fn answer(
    host: &Arc<Host>,
    name: &str,
    device: bool,
    wait: u64,
    caller: &Caller,
) -> Result<Reply, Failure> {
    if !host.config.connections.contains_key(name) {
        return Err(no_connection(host, name));
    }
    let connection = match host
        .connections
        .all()
        .into_iter()
        .find(|(known, _)| known == name)
    {
        Some((_, Ok(connection))) => connection,
        Some((_, Err(why))) => {
            return Err(LoginError::NotReady(format!("{name} cannot sign in: {why}")).into());
        }
        None => {
            let why = format!("{name} is not ready yet: try again");
            return Err(LoginError::NotReady(why).into());
        }
    };
    let Some((client, held)) = connection.renewal() else {
        return Err(Failure::Unknown(format!(
            "{name} does not sign in by OAuth 2 (auth.oauth2): there is nothing to log in to; renew its credential, then \
             `weir resume {name}`"
        )));
    };
    let way = if device { Way::Device } else { Way::Browser };
    let tell = |text: String| say(&caller.progress, Said::Line(text));
    let SignedIn {
        lifetime,
        renews,
        scope,
    } = tokio::select! {
        signed_in = sign_in(held, client, way, &tell) => signed_in?,
        () = remind(host, &caller.progress, wait) => return Err(LoginError::TooLate.into()),
        () = host.stop.stopping() => return Err(LoginError::TooLate.into()),
    };
    let mut resumed = Vec::new();
    for (other, state) in host.connections.all() {
        let shares = state.is_ok_and(|state| {
            state
                .renewal()
                .is_some_and(|(theirs, _)| theirs.key() == client.key())
        });
        if shares {
            resume::answer(host, &other, caller).await?;
            resumed.push(other);
        }
    }
    let not_ready = host
        .connections
        .all()
        .into_iter()
        .filter(|(name, _)| resumed.contains(name))
        .find_map(|(_, state)| state.err());
    Ok(Reply::with_exit(
        if not_ready.is_some() { 3 } else { 0 },
        LoggedIn {
            connection: name.to_owned(),
            lifetime,
            renews,
            scope,
            resumed,
            not_ready,
        },
    ))
}

/// Ends when the person has had time enough.
async fn remind(host: &Host, progress: &mpsc::Sender<Said>, wait: u64) {
    let until = host
        .clock
        .monotonic()
        .saturating_add(Duration::from_millis(wait));
    loop {
        let left = until.saturating_sub(host.clock.monotonic());
        if left.is_zero() {
            return;
        }
        let text = format!("waiting for the sign-in, {} s more", left.as_secs());
        say(progress, Said::Passing(text));
        host.clock.sleep(left.min(REMINDER)).await;
    }
}

fn say(progress: &mpsc::Sender<Said>, said: Said) {
    // Nobody has to listen, and nobody who does is behind by this much.
    let _ = progress.try_send(said);
}

pub(super) fn render(answer: &LoggedIn) -> String {
    let LoggedIn {
        connection,
        lifetime,
        renews,
        scope,
        resumed,
        not_ready,
    } = answer;
    let mut text = format!("{connection}: signed in");
    if let Some(scope) = scope {
        text.push_str(&format!(", for {scope}"));
    }
    text.push_str(match (renews, lifetime) {
        (true, _) => "; it renews itself.\n",
        (false, None) => ".\n",
        (false, Some(_)) => "",
    });
    if let (false, Some(ms)) = (renews, lifetime) {
        text.push_str(&format!(
            "; the vendor gave no refresh token, so sign in again in {} min.\n",
            ms / 60_000
        ));
    }
    let others: Vec<&str> = resumed
        .iter()
        .filter(|name| *name != connection)
        .map(String::as_str)
        .collect();
    if !others.is_empty() {
        text.push_str(&format!("It holds for {} as well.\n", others.join(", ")));
    }
    if let Some(why) = not_ready {
        text.push_str(&format!("Still not polled: {why}\n"));
    }
    text
}
