//! `weir login` by the real binary: the test plays the browser, the person and the vendor.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use run_support::vendor::{Act, Asked, Vendor, answer, json, orders};
use run_support::*;
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

const SECRET: &str = "cl13nt-s3cr3t/77";
const CODE: &str = "c0de/+42";
const ACCESS: &str = "acc3ss-t0ken/+1";
const REFRESH: &str = "r3fresh-t0ken/+1";
const DEVICE: &str = "dev1ce-c0de-42";

type Form = BTreeMap<String, String>;

fn form(text: &str) -> Form {
    form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

/// A vendor whose token endpoint takes a sign-in's code when it is bound to what the person's browser was sent with.
#[derive(Default)]
struct Vault {
    challenge: Option<String>,
    redirect: Option<String>,
    /// Times that the device code was asked for before the person had entered it.
    pending: u32,
    /// Forms that were sent to the token endpoint.
    forms: Vec<Form>,
}

fn vendor(vault: &Arc<Mutex<Vault>>) -> Vendor {
    let vault = vault.clone();
    Vendor::new(move |asked| serve(asked, &mut vault.lock().unwrap()))
}

fn serve(asked: &Asked, vault: &mut Vault) -> Act {
    let unfit = |code: &str| {
        let kind = [("content-type", "application/json")];
        answer(400, &kind, format!(r#"{{"error":"{code}"}}"#))
    };
    let sent = form(&asked.body);
    let basic = STANDARD.encode(format!("weir-42:{}", SECRET.replace('/', "%2F")));
    let known = asked.header("authorization") == Some(&format!("Basic {basic}"));
    match asked.target.as_str() {
        "/device" if known && sent["client_id"] == "weir-42" => json(format!(
            r#"{{"device_code":"{DEVICE}","user_code":"WDJB-MJHT","verification_uri":"https://id.example.test/device",
                "expires_in":600,"interval":1}}"#
        )),
        "/token" => {
            vault.forms.push(sent.clone());
            if !known {
                return unfit("invalid_client");
            }
            let good = match sent["grant_type"].as_str() {
                "authorization_code" => {
                    let digest = Sha256::digest(sent["code_verifier"].as_bytes());
                    sent["code"] == CODE
                        && vault.challenge.take() == Some(URL_SAFE_NO_PAD.encode(digest))
                        && vault.redirect.as_ref() == sent.get("redirect_uri")
                }
                "urn:ietf:params:oauth:grant-type:device_code" if vault.pending > 0 => {
                    vault.pending -= 1;
                    return unfit("authorization_pending");
                }
                "urn:ietf:params:oauth:grant-type:device_code" => sent["device_code"] == DEVICE,
                _ => sent["refresh_token"] == REFRESH,
            };
            if !good {
                return unfit("invalid_grant");
            }
            json(format!(
                r#"{{"access_token":"{ACCESS}","token_type":"bearer","refresh_token":"{REFRESH}","expires_in":3600,"scope":"read"}}"#
            ))
        }
        _ if asked.header("authorization") == Some(&format!("Bearer {ACCESS}")) => json(orders(3)),
        _ => answer(401, &[], "no"),
    }
}

fn place(vendor: &Vendor) -> Place {
    let origin = vendor.origin();
    let auth = format!(
        r#"auth = {{ oauth2 = {{ client_id = "weir-42", client_secret = {{ env = "CLIENT_SECRET" }}, scopes = ["read"],
            token_url = "{origin}/token", authorize_url = "{origin}/authorize?v=2", device_url = "{origin}/device" }} }}"#
    )
    .replace('\n', " ");
    Place::new(&format!("{}{FILES}", connection("acme", &origin, &auth)))
        .env("CLIENT_SECRET", SECRET)
}

/// The page that the person is told to open, once it has been told.
fn page(login: &mut Running) -> Url {
    login.until_said("open this in a browser");
    let line = until("the page", || {
        let log = login.log();
        let line = log.lines().find(|line| line.starts_with("http"))?;
        log.contains(&format!("{line}\n")).then(|| line.to_owned())
    });
    Url::parse(&line).unwrap()
}

/// What a browser gets there.
fn get(url: &Url) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).unwrap();
    let target = &url[url::Position::BeforePath..];
    write!(stream, "GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text)
}

/// The redirect's URL with these parameters.
fn back(query: &Form, pairs: &[(&str, &str)]) -> Url {
    Url::parse_with_params(&query["redirect_uri"], pairs).unwrap()
}

#[test]
fn a_person_signs_in_by_browser_and_the_running_host_goes_on() {
    let vault = Arc::<Mutex<Vault>>::default();
    let vendor = vendor(&vault);
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    running.until_said("needs a sign-in");
    let status = place.ask(&["status"]);
    assert_eq!(status.code(), 3);
    assert!(status.out.contains("`weir login acme`"), "{status:?}");
    assert_eq!(vendor.asked().len(), 0, "nothing is called meanwhile");

    let mut login = place.start(&["login", "acme"]);
    let page = page(&mut login);
    let query = form(page.query().unwrap());
    assert_eq!(page.path(), "/authorize");
    for (name, value) in [
        ("v", "2"),
        ("response_type", "code"),
        ("client_id", "weir-42"),
        ("scope", "read"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(query[name], value);
    }
    assert!(query["redirect_uri"].starts_with("http://127.0.0.1:"));
    assert!(query["state"].len() >= 43);
    {
        let mut vault = vault.lock().unwrap();
        vault.challenge = Some(query["code_challenge"].clone());
        vault.redirect = Some(query["redirect_uri"].clone());
    }

    // What does not belong to this sign-in changes nothing.
    let mut icon = back(&query, &[]);
    icon.set_path("/favicon.ico");
    assert_eq!(get(&icon).0, 404);
    for forged in [
        &[("code", "theirs"), ("state", "guessed")][..],
        &[("code", "theirs")],
        &[("error", "access_denied")],
    ] {
        assert_eq!(get(&back(&query, forged)).0, 400);
    }
    assert_eq!(vendor.count("/token"), 0);

    let state = query["state"].as_str();
    let (status, text) = get(&back(&query, &[("code", CODE), ("state", state)]));
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("You can close this page") && !text.contains(CODE));
    let login = login.end();
    assert_eq!(login.code(), 0, "{login:?}");
    assert!(
        login
            .out
            .contains("acme: signed in, for read; it renews itself"),
        "{login:?}"
    );
    assert!(
        TcpStream::connect(("127.0.0.1", back(&query, &[]).port().unwrap())).is_err(),
        "the door is closed"
    );

    place.until_delivered("acme", 3);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.json(&["status"]).1, 0);
    assert_eq!(
        vendor.count("/token"),
        1,
        "one code, one token, kept over the restart"
    );
    let key = fs::metadata(place.data().join("credentials.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    for path in place.everything().into_iter().filter(|path| path.is_file()) {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for secret in [ACCESS, REFRESH, CODE, SECRET] {
            assert!(!text.contains(secret), "{} holds {secret}", path.display());
        }
    }
}

#[test]
fn a_person_signs_in_by_device_code_without_a_running_host() {
    let vault = Arc::<Mutex<Vault>>::default();
    vault.lock().unwrap().pending = 2;
    let vendor = vendor(&vault);
    let place = place(&vendor);
    let login = place.ask(&["login", "acme", "--device", "--json"]);
    assert_eq!(login.code(), 0, "{login:?}");
    assert!(
        login.err.contains("open https://id.example.test/device")
            && login.err.contains("WDJB-MJHT")
            && !login.err.contains(DEVICE),
        "{login:?}"
    );
    let answer: serde_json::Value = serde_json::from_str(&login.out).unwrap();
    assert_eq!(answer["renews"], true);
    assert_eq!(answer["resumed"], serde_json::json!(["acme"]));
    assert_eq!(vault.lock().unwrap().forms.len(), 3);
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), first_revisions(3));
    assert_eq!(vendor.count("/token"), 3);
}

#[test]
fn a_sign_in_that_is_refused_or_takes_too_long_says_so_and_changes_nothing() {
    let vault = Arc::<Mutex<Vault>>::default();
    let vendor = vendor(&vault);
    let place = place(&vendor);
    let mut login = place.start(&["login", "acme"]);
    let query = form(page(&mut login).query().unwrap());
    let state = query["state"].as_str();
    let refusal = [
        ("error", "access_denied"),
        ("error_description", "not today"),
        ("state", state),
    ];
    assert_eq!(get(&back(&query, &refusal)).0, 200);
    let login = login.end();
    assert_eq!(login.code(), 1);
    assert!(login.err.contains("access_denied: not today"), "{login:?}");

    let login = place.ask(&["login", "acme", "--wait", "300ms"]);
    assert_eq!(login.code(), 1);
    assert!(login.err.contains("nobody signed in in time"), "{login:?}");

    let mut login = place.start(&["login", "acme"]);
    let query = form(page(&mut login).query().unwrap());
    let state = query["state"].as_str();
    // A code that was not made for this sign-in.
    assert_eq!(
        get(&back(&query, &[("code", CODE), ("state", state)])).0,
        200
    );
    let login = login.end();
    assert_eq!(login.code(), 1);
    assert!(login.err.contains("invalid_grant"), "{login:?}");
    assert_eq!(place.sync(&[]).1, 3, "it still needs a sign-in");
}

#[test]
fn what_cannot_be_logged_in_to_says_what_to_do() {
    let vendor = Vendor::new(|_| json(orders(1)));
    let origin = vendor.origin();
    let app = format!(
        r#"auth = {{ oauth2 = {{ grant = "client-credentials", client_id = "weir-42", client_secret = {{ env = "CLIENT_SECRET" }}, token_url = "{origin}/token" }} }}"#
    );
    let page = app.replace(r#"grant = "client-credentials", "#, "");
    let place = Place::new(&format!(
        "{}{}{}{FILES}",
        connection("open", &origin, ""),
        connection("app", &origin, &app),
        connection("pageless", &origin, &page),
    ))
    .env("CLIENT_SECRET", SECRET);
    for (name, code, text) in [
        ("open", 2, "weir resume open"),
        ("app", 1, "needs no sign-in"),
        ("pageless", 1, "set authorize_url"),
        ("nobody", 2, "no connection is named nobody"),
    ] {
        let login = place.ask(&["login", name]);
        assert_eq!(login.code(), code, "{login:?}");
        assert!(login.err.contains(text), "{login:?}");
    }
    let device = place.ask(&["login", "pageless", "--device"]);
    assert!(device.err.contains("set device_url"), "{device:?}");
}
