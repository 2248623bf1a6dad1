//! A credential is found nowhere but in the requests that carry it: those of the configuration, and the tokens that the
//! vendor gives while the host runs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use run_support::vendor::{Asked, Vendor, answer, json, orders};
use run_support::*;

const TOKEN: &str = "tok_9f2aQ7+/x=Zk41";
const KEY: &str = "S3CR3T/9f2 &é=%77";
const USER: &str = "ops-maria7";
const PASSWORD: &str = "pa55:w0rd?#11";
const CLIENT: &str = "cl13nt+s3cr3t/ é=";
const FIRST: &str = "rt-0000+/\"x=\\Zk";
const DEVICE: &str = "d3v/1ce+c0de=77";
/// So many of the tokens that were given are looked for.
const LOOKED_FOR: usize = 16;

/// Every form in which a secret could be written down.
fn forms(secret: &str) -> Vec<String> {
    let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let json = serde_json::to_string(secret).unwrap();
    let mut forms = vec![
        secret.to_owned(),
        encoded.to_ascii_lowercase(),
        encoded,
        form,
        json.trim_matches('"').to_owned(),
        STANDARD.encode(secret).trim_end_matches('=').to_owned(),
        URL_SAFE_NO_PAD.encode(secret),
    ];
    forms.sort();
    forms.dedup();
    forms
}

fn holds(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// A token endpoint that gives other tokens each time, and quotes what it was sent when it has a bad day.
fn token_endpoint(asked: &Asked, given: &Mutex<Vec<String>>) -> run_support::vendor::Act {
    let mut given = given.lock().unwrap();
    let turn = given.len() / 2 + 1;
    let day = asked.body.len() % 7;
    if asked.body.contains("device_code=") || day != 3 || turn < 3 {
        let tokens = [
            format!("at-{turn:04}+/x=Zk"),
            format!("rt-{turn:04}+/\"x=\\Zk"),
        ];
        given.extend(tokens.clone());
        let [access, refresh] = tokens;
        let body = serde_json::json!({
            "access_token": access, "refresh_token": refresh, "expires_in": 2, "token_type": "bearer"
        });
        return json(body.to_string());
    }
    let quoted: Vec<String> = url::form_urlencoded::parse(asked.body.as_bytes())
        .map(|(name, value)| format!("{name} is {value}"))
        .collect();
    let body = serde_json::json!({"error": "server_error", "error_description": quoted.join(", ")});
    answer(
        503,
        &[("content-type", "application/json")],
        body.to_string(),
    )
}

/// Readable by its owner alone, as the host wants it.
fn write_secret(path: &std::path::Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// What a careless vendor answers: it quotes what it was sent.
fn echo(asked: &Asked, status: u16) -> run_support::vendor::Act {
    let sent = asked
        .header("authorization")
        .unwrap_or("nothing")
        .replace('\\', "")
        .replace('"', "'");
    let body = format!(
        r#"{{"error":"you sent {sent} to {}","message":"key {} is not welcome"}}"#,
        asked.target, sent
    );
    answer(
        status,
        &[("content-type", "application/json"), ("x-echo", &sent)],
        body,
    )
}

#[test]
fn case_135_case_137_no_file_log_or_answer_holds_a_credential() {
    // One after the other: good, a redirect, and everything that can go wrong.
    let mut turn = 0;
    let given = Arc::<Mutex<Vec<String>>>::default();
    let giving = given.clone();
    let vendor = Vendor::new(move |asked| {
        match asked.target.as_str() {
            "/token" => return token_endpoint(asked, &giving),
            "/device" => {
                return json(format!(
                    r#"{{"device_code":"{DEVICE}","user_code":"WDJB","verification_uri":"https://id.example.test","interval":1}}"#
                ));
            }
            _ => {}
        }
        turn += 1;
        match turn % 10 {
            0..=3 => json(orders(2)),
            4 => answer(302, &[("location", &format!("{}&again", asked.target))], ""),
            5 => echo(asked, 404),
            6 => echo(asked, 503),
            7 => json(format!("{{\"at\":\"{}\"", asked.target)),
            8 => echo(asked, 401),
            _ => echo(asked, 418),
        }
    });
    let refused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = format!("http://{refused}");
    let bearer = r#"auth = { bearer = { env = "ACME_TOKEN" } }"#;
    let query = r#"auth = { query = { name = "api_key", value = { env = "ACME_KEY" } } }"#;
    let basic =
        r#"auth = { basic = { user = { env = "ACME_USER" }, password = { file = "password" } } }"#;
    let renewed = format!(
        r#"auth = {{ oauth2 = {{ client_id = "weir-42", client_secret = {{ command = ["cat", "client"] }}, refresh_token = {{ file = "first" }}, token_url = "{}/token", client_auth = "body" }} }}"#,
        vendor.origin()
    );
    let signed_in = format!(
        r#"auth = {{ oauth2 = {{ client_id = "weir-42", client_secret = {{ command = ["cat", "client"] }}, token_url = "{origin}/token", device_url = "{origin}/device" }} }}"#,
        origin = vendor.origin()
    );
    let place = Place::new(&format!(
        "{}{}{}{}{}{}{FILES}",
        connection("acme", &vendor.origin(), bearer),
        connection("beta", &vendor.origin(), query),
        connection("gamma", &vendor.origin(), basic),
        connection("delta", &refused, query),
        connection("epsilon", &vendor.origin(), &renewed),
        connection("zeta", &vendor.origin(), &signed_in),
    ))
    .env("ACME_TOKEN", TOKEN)
    .env("ACME_KEY", KEY)
    .env("ACME_USER", USER);
    write_secret(&place.path("password"), PASSWORD);
    write_secret(&place.path("client"), CLIENT);
    write_secret(&place.path("first"), FIRST);

    let everything = "trace,hyper=trace,reqwest=trace,hyper_util=trace,redb=trace";
    for level in ["trace", everything] {
        let mut said = Vec::new();
        let mut running = place.start(&["run", "--log-level", level]);
        running.until_said("weir runs");
        said.push(place.ask(&["login", "zeta", "--device", "--log-level", level]));
        let goal = vendor.asked().len() + 60;
        until("enough has happened", || {
            // Whoever is parked or signed out is asked for again.
            for connection in ["acme", "beta", "gamma", "delta", "epsilon", "zeta"] {
                said.push(place.ask(&["resume", connection, "--json"]));
            }
            (vendor.asked().len() >= goal).then_some(())
        });
        for args in [
            &["status", "--json"][..],
            &["status"],
            &["polls", "--json", "--limit", "1000"],
            &["polls", "--limit", "1000"],
            &["check", "--json"],
            &["check"],
            &["connectors", "--json"],
            &["records", "--json"],
            &["sync", "--json", "--wait", "1ms"],
        ] {
            said.push(place.ask(&[args, &["--log-level", level]].concat()));
        }
        said.push(running.stop());
        said.push(place.ask(&["status", "--json", "--log-level", level]));
        said.push(place.ask(&["sync", "--wait", "1ms", "--log-level", level]));
        said.push(place.ask(&["sync", "--config", "nowhere.toml", "--log-level", level]));
        for (number, ended) in said.iter().enumerate() {
            fs::write(
                place.path(&format!("said-{level}-{number}.txt")),
                format!("{}\n{}", ended.out, ended.err),
            )
            .unwrap();
        }
    }

    // The credentials were really used.
    let asked = vendor.asked();
    let authorization =
        |asked: &Asked| asked.header("authorization").unwrap_or_default().to_owned();
    assert!(
        asked
            .iter()
            .any(|asked| authorization(asked) == format!("Bearer {TOKEN}"))
    );
    let pair = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    assert!(
        asked
            .iter()
            .any(|asked| authorization(asked) == format!("Basic {pair}"))
    );
    assert!(
        asked
            .iter()
            .any(|asked| asked.target.contains("api_key=S3CR3T"))
    );

    let given = given.lock().unwrap().clone();
    let sent_by = |name: &str| {
        let target = format!("/{name}/");
        let sent = asked
            .iter()
            .filter(|asked| asked.target.starts_with(&target));
        let sent: Vec<String> = sent.map(authorization).collect();
        sent.iter()
            .filter(|sent| {
                given
                    .iter()
                    .any(|token| **sent == format!("Bearer {token}"))
            })
            .count()
    };
    assert!(sent_by("epsilon") > 5 && sent_by("zeta") > 5);
    assert!(given.len() > 8, "{given:?}");
    let refreshed = |token: &str| {
        asked.iter().any(|asked| {
            url::form_urlencoded::parse(asked.body.as_bytes()).any(|(_, value)| value == token)
        })
    };
    assert!(refreshed(FIRST) && refreshed(&given[1]) && refreshed(CLIENT) && refreshed(DEVICE));

    let mut wanted: Vec<String> = [TOKEN, KEY, USER, PASSWORD, CLIENT, FIRST, DEVICE]
        .into_iter()
        .chain(given.iter().take(LOOKED_FOR).map(String::as_str))
        .chain(given.iter().rev().take(LOOKED_FOR).map(String::as_str))
        .flat_map(forms)
        .collect();
    let client = STANDARD.encode(format!(
        "weir-42:{}",
        url::form_urlencoded::byte_serialize(CLIENT.as_bytes()).collect::<String>()
    ));
    wanted.push(client.trim_end_matches('=').to_owned());
    wanted.push(pair.trim_end_matches('=').to_owned());
    let mut read = 0;
    for path in place.everything() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !path.is_file()
            || ["password", "client", "first"].contains(&name.as_str())
            || name.ends_with(".wasm")
        {
            continue;
        }
        read += 1;
        let bytes = fs::read(&path).unwrap();
        for form in &wanted {
            if holds(&bytes, form) {
                let text = String::from_utf8_lossy(&bytes);
                let around: Vec<&str> = text
                    .lines()
                    .filter(|line| line.contains(form))
                    .take(3)
                    .collect();
                panic!("{} holds {form:?}: {around:#?}", path.display());
            }
        }
    }
    assert!(read > 30, "{read}");
    // The search itself finds what is there.
    assert!(holds(&fs::read(place.path("password")).unwrap(), PASSWORD));
}

#[test]
fn a_secret_that_is_renewed_in_its_file_is_used_by_the_next_poll() {
    let taken: Arc<Mutex<String>> = Arc::new(Mutex::new("Bearer first-4711".to_owned()));
    let takes = taken.clone();
    let vendor = Vendor::new(move |asked| {
        if asked.header("authorization") == Some(&takes.lock().unwrap()) {
            json(orders(2))
        } else {
            answer(401, &[], "{}")
        }
    });
    let auth = "auth = { bearer = { file = \"token\" } }";
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), auth)
    ));
    let token = place.path("token");
    write_secret(&token, "first-4711\n");
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    place.until_delivered("acme", 2);
    let sent = |value: &str| {
        let asked = vendor.asked();
        let of_it = |asked: &&Asked| asked.header("authorization") == Some(value);
        asked.iter().filter(of_it).count()
    };

    // Renewed, as careful programs do it, while the vendor takes both: no poll is refused.
    vendor.script(|_| json(orders(3)));
    write_secret(&place.path("token.new"), "second-4712");
    fs::rename(place.path("token.new"), &token).unwrap();
    until("the new one is used", || {
        (sent("Bearer second-4712") > 2).then_some(())
    });
    let firsts = sent("Bearer first-4711");
    assert_eq!(place.ask(&["status"]).code(), 0);

    // Unreadable, empty, open to others: the one before is used on, and that is said.
    for (what, mode, said) in [
        ("", 0o600, "is empty"),
        ("third-4713", 0o644, "can be read by other users"),
    ] {
        fs::write(&token, what).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
        let told = until("it is said", || {
            let told = place.ask(&["status"]);
            told.out.contains(said).then_some(told)
        });
        assert_eq!(told.code(), 3);
        assert!(
            told.out.contains("what it held before is used on"),
            "{told:?}"
        );
    }
    fs::remove_file(&token).unwrap();
    until("it is said", || {
        place
            .ask(&["status"])
            .out
            .contains("cannot be read")
            .then_some(())
    });
    let seconds = sent("Bearer second-4712");
    until("polls go on with the one before", || {
        (sent("Bearer second-4712") > seconds + 1).then_some(())
    });

    // Revoked at the vendor: a new one in the file is a sign-in, and nobody has to say so.
    *taken.lock().unwrap() = "Bearer fourth-4714".to_owned();
    let takes = taken.clone();
    vendor.script(move |asked| {
        if asked.header("authorization") == Some(&takes.lock().unwrap()) {
            json(orders(4))
        } else {
            answer(401, &[], "{}")
        }
    });
    until("it needs a sign-in", || {
        place
            .ask(&["status"])
            .out
            .contains("acme needs a sign-in")
            .then_some(())
    });
    write_secret(&token, "fourth-4714");
    place.until_delivered("acme", 4);
    until("nothing needs a person", || {
        (place.ask(&["status"]).code() == 0).then_some(())
    });
    let ended = running.stop();
    assert_eq!(ended.code(), 0);
    assert_eq!(
        sent("Bearer first-4711"),
        firsts,
        "the first one is never used again"
    );
    assert_eq!(sent("Bearer third-4713"), 0);
    assert_eq!(place.keys("acme"), first_revisions(4));
    for secret in ["first-4711", "second-4712", "third-4713", "fourth-4714"] {
        assert!(!ended.err.contains(secret), "{ended:?}");
    }
}
