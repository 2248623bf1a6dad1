//! The device code (RFC 8628): for machines without a browser.

use std::time::Duration as Span;

use weir_rules::model::Class;

use super::{Brought, LoginError, denied};
use crate::http::guard::shown;
use crate::oauth::Io;
use crate::oauth::answer::{self, Fields, Meaning};
use crate::oauth::call::post;
use crate::oauth::client::Client;

/// How often the vendor is asked where it does not say, and what is added when it says "slower"; in seconds.
const STEP: u64 = 5;
/// The longest pause that is believed, in seconds.
const LONGEST_STEP: u64 = 300;
/// The longest life of a code that is believed, in seconds.
const LONGEST_LIFE: u64 = 3_600;

pub(super) async fn sign_in(
    io: &Io,
    client: &Client,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Brought, LoginError> {
    let place = client.device.as_ref().ok_or(LoginError::NoDevice)?;
    let scopes = client.scopes.join(" ");
    // The client's id is always named here; identifying it may have done so already.
    let mut form = Vec::new();
    if client.basic().is_some() {
        form.push(("client_id", client.id.reveal()));
    }
    if !scopes.is_empty() {
        form.push(("scope", scopes.as_str()));
    }
    let response = post(io, client, place, &form).await?;
    let fields = Fields::of(&response);
    let text = |names: &[&str]| names.iter().find_map(|name| fields.text(name));
    let device_code = text(&["device_code"]);
    let user_code = text(&["user_code"]);
    let page = text(&["verification_uri", "verification_url"]);
    let (Some(device_code), Some(user_code), Some(page)) = (device_code, user_code, page) else {
        let Err(refusal) = answer::read(&response) else {
            return Err(LoginError::Answer {
                place: shown(&place.url),
                detail: "without a code".to_owned(),
            });
        };
        return Err(denied(client, &refusal));
    };
    let seconds = |name: &str, default: u64, most: u64| {
        fields
            .number(name)
            .filter(|number| *number >= 1.0)
            .map_or(default, |number| (number as u64).min(most))
    };
    let mut step = seconds("interval", STEP, LONGEST_STEP);
    let life = Span::from_secs(seconds("expires_in", LONGEST_LIFE, LONGEST_LIFE));
    tell(format!(
        "open {} in any browser, and enter the code {}",
        plain(&page),
        plain(&user_code)
    ));
    if let Some(whole) = text(&["verification_uri_complete"]) {
        tell(format!(
            "or open this, with the code in it:\n{}",
            plain(&whole)
        ));
    }
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", device_code.as_str()),
    ];
    let until = io.clock.monotonic().saturating_add(life);
    loop {
        io.clock.sleep(Span::from_secs(step)).await;
        if io.clock.monotonic() >= until {
            return Err(LoginError::TooLate);
        }
        let asked = io.clock.wall();
        let response = match post(io, client, &client.token, &form).await {
            Ok(response) => response,
            Err(error) if error.class() == Class::Temporary => {
                // RFC 8628 section 3.5: ask less often.
                step = slower(step);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match answer::read(&response) {
            Ok(tokens) => return Ok(Brought { tokens, asked }),
            Err(refusal) => match refusal.meaning {
                Meaning::Pending => {}
                Meaning::Busy(_) => step = slower(step),
                Meaning::GrantIsDead if refusal.code == "expired_token" => {
                    return Err(LoginError::TooLate);
                }
                _ => return Err(denied(client, &refusal)),
            },
        }
    }
}

fn slower(step: u64) -> u64 {
    step.saturating_add(STEP).min(LONGEST_STEP)
}

/// What a vendor says goes to a terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(500).collect()
}
