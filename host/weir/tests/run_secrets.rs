//! A credential is found nowhere but in the requests that carry it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use run_support::vendor::{Asked, Vendor, answer, json, orders};
use run_support::*;

const TOKEN: &str = "tok_9f2aQ7+/x=Zk41";
const KEY: &str = "S3CR3T/9f2 &é=%77";
const USER: &str = "ops-maria7";
const PASSWORD: &str = "pa55:w0rd?#11";

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
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
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
    let vendor = Vendor::new(move |asked| {
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
    let place = Place::new(&format!(
        "{}{}{}{}{FILES}",
        connection("acme", &vendor.origin(), bearer),
        connection("beta", &vendor.origin(), query),
        connection("gamma", &vendor.origin(), basic),
        connection("delta", &refused, query),
    ))
    .env("ACME_TOKEN", TOKEN)
    .env("ACME_KEY", KEY)
    .env("ACME_USER", USER);
    fs::write(place.path("password"), PASSWORD).unwrap();

    let everything = "trace,hyper=trace,reqwest=trace,hyper_util=trace,redb=trace";
    for level in ["trace", everything] {
        let mut said = Vec::new();
        let running = place.start(&["run", "--log-level", level]);
        let goal = vendor.asked().len() + 30;
        until("enough has happened", || {
            // Whoever is parked or signed out is asked for again.
            for connection in ["acme", "beta", "gamma", "delta"] {
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

    let mut wanted: Vec<String> = [TOKEN, KEY, USER, PASSWORD]
        .into_iter()
        .flat_map(forms)
        .collect();
    wanted.push(pair.trim_end_matches('=').to_owned());
    let mut read = 0;
    for path in place.everything() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !path.is_file() || name == "password" || name.ends_with(".wasm") {
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
