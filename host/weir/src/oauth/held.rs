//! One credential: what it is now, and how it is renewed.

use std::sync::Arc;
use std::time::Duration as Span;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use weir_rules::backoff::Backoff;
use weir_rules::http_date::Anchor;
use weir_rules::limits;
use weir_rules::model::{Class, Duration, Fault, Scope, Timestamp};
use weir_rules::wait::{self, Source, Wait};

use super::Io;
use super::answer::{self, Meaning, Refusal, Tokens};
use super::call::post;
use super::client::Client;
use super::kept::{KeepError, Kept};
use crate::config::{Grant, Secret};
use crate::http::redact::{Live, Redactor};
use crate::http::{HttpResponse, TransportError};

/// A token is renewed when this share of its life is left,
const EARLY_SHARE: u64 = 10;
/// at least this much of it, in ms,
const EARLY_FLOOR: Duration = 60_000;
/// but not before this share of its life is over.
const EARLY_MOST: u64 = 2;

/// What calls are signed with.
pub struct Access {
    number: u64,
    token: Secret,
    expires: Option<Timestamp>,
    lifetime: Option<Duration>,
}

impl Access {
    /// Tells one token from the next.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The token.
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// It has not run out.
    fn is_good(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// It does not run out soon.
    fn is_fresh(&self, now: Timestamp) -> bool {
        let lifetime = self.lifetime.unwrap_or_default();
        let early = (lifetime / EARLY_SHARE)
            .max(EARLY_FLOOR)
            .min(lifetime / EARLY_MOST);
        let due = |expires: Timestamp| expires.saturating_sub_unsigned(early);
        self.expires.is_none_or(|expires| now < due(expires))
    }
}

/// Why there is no token to sign a call with.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// What happened, as any call's fault.
    pub fault: Fault,
    /// How long everybody on the credential waits.
    pub wait: Option<Wait>,
}

impl Trouble {
    fn new(class: Class, code: &str, message: String) -> Trouble {
        let scope = match class {
            Class::AuthRevoked | Class::AuthExpired => Scope::Credential,
            _ => Scope::Unit,
        };
        Trouble {
            fault: Fault {
                class,
                scope,
                code: code.to_owned(),
                message,
                wait: None,
                page_size: None,
                limits: Vec::new(),
            },
            wait: None,
        }
    }

    fn needs_sign_in(&self) -> bool {
        self.fault.class == Class::AuthRevoked
    }
}

/// What a caller wants.
#[derive(Clone, Copy)]
enum Need {
    /// A token that does not run out soon.
    Fresh,
    /// Another one than this: the vendor has refused it.
    Other(u64),
}

/// One credential, for everybody who shares it.
pub struct Held {
    key: String,
    io: Arc<Io>,
    current: ArcSwapOption<Access>,
    live: Live,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is stored has been read.
    loaded: bool,
    kept: Kept,
    /// What the vendor gave last could not be stored yet.
    unsaved: bool,
    /// How many access tokens there have been in this process.
    count: u64,
    /// Failures in a row.
    failures: u32,
    /// Nothing is asked before that.
    rest: Option<Rest>,
    /// Nothing is asked before a person has done something.
    dead: Option<Dead>,
}

struct Rest {
    /// By the monotonic clock.
    until: Span,
    trouble: Trouble,
}

struct Dead {
    /// Of the client that was refused.
    proof: String,
    trouble: Trouble,
}

impl Held {
    pub(super) fn new(key: String, io: Arc<Io>) -> Held {
        Held {
            key,
            io,
            current: ArcSwapOption::empty(),
            live: Live::default(),
            state: Mutex::default(),
        }
    }

    pub(super) fn io(&self) -> &Io {
        &self.io
    }

    /// Knows the tokens of the last while, for masking.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// A token to sign a call with.
    ///
    /// # Errors
    /// [`Trouble`]
    pub async fn access(self: &Arc<Self>, client: &Arc<Client>) -> Result<Arc<Access>, Trouble> {
        let now = self.io.clock.wall();
        match self.current.load_full() {
            Some(access) if access.is_fresh(now) => Ok(access),
            _ => self.in_own_task(client, Need::Fresh).await,
        }
    }

    /// A token after the vendor has refused the one of that number: another one that somebody else has got meanwhile, or
    /// a new one.
    ///
    /// # Errors
    /// [`Trouble`]
    pub async fn renewed(
        self: &Arc<Self>,
        client: &Arc<Client>,
        refused: u64,
    ) -> Result<Arc<Access>, Trouble> {
        self.in_own_task(client, Need::Other(refused)).await
    }

    /// A person has done something about it: what was refused is tried again, and what could not be read is read again.
    pub async fn revive(&self) {
        let mut state = self.state.lock().await;
        state.dead = None;
        state.rest = None;
        state.failures = 0;
        state.loaded &= state.unsaved || self.current.load().is_some();
    }

    /// Takes what a sign-in has brought.
    pub(super) async fn accept(
        &self,
        client: &Client,
        tokens: &Tokens,
        asked: Timestamp,
    ) -> Result<(), Trouble> {
        let mut state = self.state.lock().await;
        state.loaded = true;
        state.kept = Kept::default();
        self.keep(&mut state, client, tokens, asked).await.map(drop)
    }

    /// A renewal that has begun must end: a token that nobody stored is lost. So it does not end with its caller.
    async fn in_own_task(
        self: &Arc<Self>,
        client: &Arc<Client>,
        need: Need,
    ) -> Result<Arc<Access>, Trouble> {
        let (held, client) = (self.clone(), client.clone());
        let renewal = tokio::spawn(async move { held.renew(&client, need).await });
        renewal.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a token's renewal broke down; this is a fault of weir");
            let message = "the token's renewal broke down; the log has the reason".to_owned();
            Err(Trouble::new(Class::Temporary, "host", message))
        })
    }

    async fn renew(&self, client: &Client, need: Need) -> Result<Arc<Access>, Trouble> {
        // Whoever comes second finds here what the first has brought.
        let mut state = self.state.lock().await;
        self.load(&mut state, client)?;
        let now = self.io.clock.wall();
        let current = self.current.load_full();
        let spare = match (current, need) {
            (Some(access), Need::Fresh) if access.is_fresh(now) => return Ok(access),
            (Some(access), Need::Other(refused)) if access.number != refused => return Ok(access),
            (Some(access), Need::Fresh) if access.is_good(now) => Some(access),
            _ => None,
        };
        match (self.obtain(&mut state, client, now).await, spare) {
            // It is good for a little longer.
            (Err(trouble), Some(access)) if !trouble.needs_sign_in() => Ok(access),
            (obtained, _) => obtained,
        }
    }

    fn load(&self, state: &mut State, client: &Client) -> Result<(), Trouble> {
        if state.loaded {
            return Ok(());
        }
        match Kept::load(&self.io, &self.key) {
            Ok(kept) => {
                state.kept = kept.unwrap_or_default();
                self.publish(state);
            }
            Err(KeepError::Store(error)) => {
                return Err(Trouble::new(Class::Temporary, "store", error.to_string()));
            }
            Err(error) if client.grant == Grant::ClientCredentials => {
                // Another one is had for the asking.
                tracing::warn!(credential = self.key, %error, "a stored token can't be read and is not used");
            }
            Err(error) => {
                let message = format!("the stored sign-in can't be read: {error}");
                self.give_up(state, client, "sealed", message);
            }
        }
        state.loaded = true;
        Ok(())
    }

    async fn obtain(
        &self,
        state: &mut State,
        client: &Client,
        now: Timestamp,
    ) -> Result<Arc<Access>, Trouble> {
        if let Some(dead) = &state.dead
            && dead.proof == client.proof()
        {
            return Err(dead.trouble.clone());
        }
        if let Some(trouble) = self.resting(state) {
            return Err(trouble);
        }
        if state.unsaved {
            return self.save(state, client).await;
        }
        let scopes = client.scopes.join(" ");
        let refresh;
        let mut form = match client.grant {
            Grant::ClientCredentials => vec![("grant_type", "client_credentials")],
            Grant::RefreshToken => {
                refresh = self.refresh_token(state, client)?;
                vec![
                    ("grant_type", "refresh_token"),
                    ("refresh_token", refresh.as_str()),
                ]
            }
        };
        // A refresh token carries its scopes; only an app asks for them each time.
        if client.grant == Grant::ClientCredentials && !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let tokens = self.ask(state, client, &form, now).await?;
        self.keep(state, client, &tokens, now).await
    }

    /// The refresh token that is good now. The configuration's is the one to begin with, and no more than that.
    fn refresh_token(&self, state: &mut State, client: &Client) -> Result<String, Trouble> {
        let kept = &mut state.kept;
        if kept.refresh.is_none() && kept.access.is_none() {
            kept.refresh = client.first.as_ref().map(|first| first.reveal().to_owned());
        }
        kept.refresh.clone().ok_or_else(|| {
            let message = match kept.access {
                None => "nobody has signed in yet",
                Some(_) => {
                    "the access token is not good any more, and the vendor gave none to renew it"
                }
            };
            Trouble::new(Class::AuthRevoked, "not-signed-in", message.to_owned())
        })
    }

    /// Asks for tokens. An answer that was lost on its way is asked for once more: the vendor may still take the old
    /// refresh token.
    async fn ask(
        &self,
        state: &mut State,
        client: &Client,
        form: &[(&str, &str)],
        now: Timestamp,
    ) -> Result<Tokens, Trouble> {
        let rotates = client.grant == Grant::RefreshToken;
        let before = state.kept.in_doubt;
        if rotates {
            // Also shows that what comes back can be stored.
            state.kept.in_doubt.get_or_insert(now);
            if let Err(error) = state.kept.save(&self.io, &self.key).await {
                state.kept.in_doubt = before;
                return Err(self.not_stored(state, &error));
            }
        }
        let mut answer = post(&self.io, client, &client.token, form).await;
        let mut lost = None;
        if rotates
            && let Err(error) = &answer
            && may_have_arrived(error)
        {
            lost = Some(error.to_string());
            answer = post(&self.io, client, &client.token, form).await;
        }
        let doubtful = before.is_some() || lost.is_some();
        let (refusal, response) = match answer {
            Err(error) => {
                if !doubtful && !may_have_arrived(&error) {
                    self.no_doubt(state).await;
                }
                let message = self.masked(client, &error.to_string());
                let trouble = Trouble::new(error.class(), error.code(), message);
                return Err(self.rest(state, trouble, None));
            }
            Ok(response) => match answer::read(&response) {
                Ok(tokens) => return Ok(tokens),
                Err(refusal) => (refusal, response),
            },
        };
        let arrived_in_vain = matches!(
            refusal.meaning,
            Meaning::ClientIsRefused | Meaning::Unknown | Meaning::Busy(Class::RateLimited)
        );
        if rotates && !doubtful && arrived_in_vain {
            self.no_doubt(state).await;
        }
        Err(self.refused(state, client, &refusal, &response, doubtful.then_some(lost)))
    }

    /// What a refusal makes of the credential. `doubt`: an answer was lost before, and perhaps why.
    #[expect(
        clippy::option_option,
        reason = "in doubt is one thing, and knowing why another"
    )]
    fn refused(
        &self,
        state: &mut State,
        client: &Client,
        refusal: &Refusal,
        response: &HttpResponse,
        doubt: Option<Option<String>>,
    ) -> Trouble {
        let words = match refusal.words.as_str() {
            "" => String::new(),
            words => format!(": {words}"),
        };
        let said = format!("{} answered {}{words}", client.shown(), refusal.code);
        let said = self.masked(client, &said);
        let code = self.masked(client, &refusal.code);
        match refusal.meaning {
            Meaning::GrantIsDead => {
                let message = match doubt {
                    None => said,
                    Some(why) => format!(
                        "the answer to a token's renewal was lost on its way{}; the vendor has most likely put a new \
                         refresh token in the place of the old one, and takes the old one no more ({said})",
                        why.map_or_else(String::new, |why| format!(" ({why})"))
                    ),
                };
                self.give_up(state, client, &code, message)
            }
            Meaning::ClientIsRefused => {
                let message =
                    format!("{said}: check client_id, client_secret, scopes and token_url");
                self.give_up(state, client, &code, message)
            }
            Meaning::Busy(class) => {
                let received = self.io.clock.wall();
                let anchor = Anchor::of(&response.headers, received);
                let wait = wait::vendor_wait(&wait::Answer {
                    class,
                    headers: &response.headers,
                    at: anchor,
                    body_wait: None,
                    limits: &limits::read(&response.headers, &anchor).limits,
                    repeats: state.failures,
                });
                self.rest(state, Trouble::new(class, &code, said), wait)
            }
            Meaning::Pending | Meaning::Unknown => {
                self.rest(state, Trouble::new(Class::Unknown, &code, said), None)
            }
        }
    }

    /// Nothing is asked for a while: as long as the vendor says, else longer with each failure in a row.
    fn rest(&self, state: &mut State, mut trouble: Trouble, wait: Option<Wait>) -> Trouble {
        state.failures = state.failures.saturating_add(1);
        let wait = wait.filter(|wait| wait.ms > 0).map_or_else(
            || Wait {
                ms: Backoff::default()
                    .draw(state.failures, &mut *self.io.random.lock())
                    .max(1),
                source: Source::Credential,
                absurd: false,
            },
            |wait| {
                trouble.fault.scope = Scope::Credential;
                wait
            },
        );
        trouble.wait = Some(wait);
        let now = self.io.clock.monotonic();
        state.rest = Some(Rest {
            until: now.saturating_add(Span::from_millis(wait.ms)),
            trouble: trouble.clone(),
        });
        tracing::warn!(
            credential = self.key,
            code = trouble.fault.code,
            message = trouble.fault.message,
            wait_ms = wait.ms,
            "no token was to be had; it is tried again"
        );
        trouble
    }

    fn resting(&self, state: &State) -> Option<Trouble> {
        let rest = state.rest.as_ref()?;
        let left = rest.until.checked_sub(self.io.clock.monotonic())?;
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let mut trouble = rest.trouble.clone();
        trouble.wait = trouble.wait.map(|wait| Wait { ms: left, ..wait });
        (left > 0).then_some(trouble)
    }

    /// Nothing is asked until a person has done something.
    fn give_up(&self, state: &mut State, client: &Client, code: &str, message: String) -> Trouble {
        let trouble = Trouble::new(Class::AuthRevoked, code, message);
        state.dead = Some(Dead {
            proof: client.proof().to_owned(),
            trouble: trouble.clone(),
        });
        trouble
    }

    /// The vendor has refused before it changed anything.
    async fn no_doubt(&self, state: &mut State) {
        state.kept.in_doubt = None;
        if let Err(error) = state.kept.save(&self.io, &self.key).await {
            // It only makes a later text more careful than it need be.
            tracing::debug!(credential = self.key, %error, "not noted");
        }
    }

    /// What the vendor gave is stored, and then used.
    async fn keep(
        &self,
        state: &mut State,
        client: &Client,
        tokens: &Tokens,
        asked: Timestamp,
    ) -> Result<Arc<Access>, Trouble> {
        state.kept = state.kept.renewed(tokens, asked);
        for secret in [&state.kept.access, &state.kept.refresh]
            .into_iter()
            .flatten()
        {
            self.live.add(secret);
        }
        self.save(state, client).await
    }

    async fn save(&self, state: &mut State, client: &Client) -> Result<Arc<Access>, Trouble> {
        state.unsaved = true;
        match state.kept.save(&self.io, &self.key).await {
            Ok(()) => state.unsaved = false,
            Err(error) if client.grant == Grant::ClientCredentials => {
                // It is had again for the asking.
                tracing::warn!(credential = self.key, %error, "the token is not stored");
                state.unsaved = false;
            }
            Err(error) => return Err(self.not_stored(state, &error)),
        }
        state.failures = 0;
        state.rest = None;
        state.dead = None;
        tracing::info!(credential = self.key, "the access token is renewed");
        self.publish(state).ok_or_else(|| {
            let message = "there is no access token".to_owned();
            Trouble::new(Class::Temporary, "host", message)
        })
    }

    fn not_stored(&self, state: &mut State, error: &KeepError) -> Trouble {
        let message = format!("tokens can't be stored, so none is asked for: {error}");
        self.rest(
            state,
            Trouble::new(Class::Temporary, "store", message),
            None,
        )
    }

    /// From now on calls are signed with what is kept.
    fn publish(&self, state: &mut State) -> Option<Arc<Access>> {
        for secret in [&state.kept.access, &state.kept.refresh]
            .into_iter()
            .flatten()
        {
            self.live.add(secret);
        }
        let token = state.kept.access.as_deref()?;
        state.count += 1;
        let access = Arc::new(Access {
            number: state.count,
            token: Secret::new(token),
            expires: state.kept.expires,
            lifetime: state.kept.lifetime,
        });
        self.current.store(Some(access.clone()));
        Some(access)
    }

    /// Vendors quote what they were sent.
    fn masked(&self, client: &Client, text: &str) -> String {
        let redactor = Redactor::join([client.redactor()]).and_live(&self.live);
        redactor.mask(text).into_owned()
    }
}

/// The vendor may have got the request, and answered it.
fn may_have_arrived(error: &TransportError) -> bool {
    match error {
        TransportError::Timeout { .. }
        | TransportError::Broken { .. }
        | TransportError::TooLarge { .. } => true,
        TransportError::Connect { .. } | TransportError::Refused { .. } => false,
    }
}
