//! What vendors do wrong, over real HTTP: each ends as the right outcome in the log of polls, and nothing is lost.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};

use flate2::Compression;
use flate2::write::GzEncoder;
use run_support::vendor::{Act, Vendor, answer, flood, head, json, orders, raw, silence};
use run_support::*;
use serde_json::Value;

const JSON: (&str, &str) = ("content-type", "application/json");

fn place(vendor: &Vendor) -> Place {
    Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ))
}

/// Two good records, then this answer, then three. The poll of the bad answer, as the log has it.
fn between_good_ones(bad: impl Fn(&str) -> Act + Send + 'static) -> Value {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = place(&vendor);
    assert_eq!(place.sync(&[]).1, 0);
    let origin = vendor.origin();
    vendor.script(move |_| bad(&origin));
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 1, "{report}");
    let poll = place.polls("acme").swap_remove(0);
    assert_eq!(poll["outcome"], "failed", "{poll}");
    assert_eq!(poll["records"], 0, "nothing of it counts: {poll}");
    assert_eq!(place.keys("acme"), first_revisions(2));
    vendor.script(|_| json(orders(3)));
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(place.keys("acme"), first_revisions(3));
    poll
}

fn is(poll: &Value, class: &str, code: &str) {
    assert_eq!(
        (&poll["class"], &poll["code"]),
        (&class.into(), &code.into()),
        "{poll}"
    );
}

fn says(poll: &Value, text: &str) {
    assert!(poll["message"].as_str().unwrap().contains(text), "{poll}");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn case_105_a_page_of_html_with_200_is_no_empty_list() {
    for kind in ["text/html", "application/json"] {
        let poll = between_good_ones(move |_| {
            answer(
                200,
                &[("content-type", kind)],
                "<!DOCTYPE html><p>Back soon: maintenance</p>",
            )
        });
        assert_eq!(poll["class"], "temporary", "{poll}");
        says(&poll, "maintenance");
    }
}

#[test]
fn case_107_a_wrong_shape_is_no_empty_list() {
    for body in [
        r#"{"ok":true,"channels":{}}"#,
        r#"{"ok":true}"#,
        "[]",
        "null",
    ] {
        let poll = between_good_ones(move |_| json(body));
        says(&poll, "/orders");
    }
}

#[test]
fn case_109_fewer_bytes_than_announced_are_no_answer() {
    let poll = between_good_ones(|_| {
        let mut bytes = head(200, &[JSON], Some(10_000));
        bytes.extend(orders(9).into_bytes());
        raw(bytes)
    });
    is(&poll, "temporary", "broken");
}

#[test]
fn case_111_a_compressed_answer_without_its_end_is_no_answer() {
    let poll = between_good_ones(|_| {
        let mut bytes = head(200, &[JSON, ("content-encoding", "gzip")], None);
        let packed = gzip(orders(9).as_bytes());
        bytes.extend(&packed[..packed.len() - 8]);
        raw(bytes)
    });
    is(&poll, "temporary", "broken");
}

#[test]
fn a_connection_that_ends_before_the_answer_is_temporary() {
    for piece in [
        "",
        "HTTP/1.1 200 O",
        "HTTP/1.1 200 OK\r\ncontent-type: appl",
        "nonsense\r\n\r\n",
    ] {
        let poll = between_good_ones(move |_| raw(piece));
        assert_eq!(poll["class"], "temporary", "{piece:?}: {poll}");
    }
}

#[test]
fn an_answer_that_holds_nothing_is_no_empty_list() {
    let poll = between_good_ones(|_| answer(200, &[JSON], ""));
    assert_eq!(poll["calls"], 1, "{poll}");
}

#[test]
fn json_as_deep_as_a_well_costs_one_poll() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let poll = between_good_ones(move |_| {
            let (open, close) = (open.repeat(200_000), close.repeat(200_000));
            json(format!(
                r#"{{"orders":[{{"id":9,"deep":{open}1{close}}}]}}"#
            ))
        });
        assert_eq!(poll["calls"], 1, "{poll}");
    }
}

#[test]
fn case_117_what_the_vendor_wrote_is_delivered_in_one_line_each() {
    // Digits beyond a double, money, an exponent, line breaks, an id that is hard on keys and paths, half an emoji.
    let ids = [
        r"9224851642388483",
        r#""1285704473650888702""#,
        r#""a/b?c%20d \"e\" \n\u00e9""#,
        r#""../..""#,
    ];
    let records: Vec<String> = ids
        .iter()
        .map(|id| {
            format!(
                "{{\r\n  \"id\": {id},\n\t\"price\": 0.10, \"n\": 1E2, \"cut\": \"\\ud83d\"\n}}"
            )
        })
        .collect();
    let body = format!("\u{feff}{{ \"orders\": [\n{}\n]}}\n", records.join(",\n"));
    let vendor = Vendor::new(move |_| json(body.clone()));
    let place = place(&vendor);
    for _ in 0..2 {
        let (report, exit) = place.sync(&[]);
        assert_eq!(exit, 0, "{report}");
    }
    let text = std::fs::read_to_string(place.path("out/acme.ndjson")).unwrap();
    let lines = place.delivered("acme");
    assert_eq!((text.lines().count(), lines.len()), (4, 4), "{text}");
    let of = |line: usize| lines[line].id.clone();
    assert_eq!([of(0), of(1)], ["9224851642388483", "1285704473650888702"]);
    assert_eq!([of(2), of(3)], ["a/b?c%20d \"e\" \n\u{e9}", "../.."]);
    for (line, id) in lines.iter().zip(ids) {
        let data = line.data.get();
        assert!(data.contains(&format!("\"id\": {id},")), "{data}");
        assert!(data.contains("\"price\": 0.10, \"n\": 1E2,"), "{data}");
    }
}

#[test]
fn an_answer_of_the_old_protocol_is_read() {
    let vendor = Vendor::new(|_| raw(format!("HTTP/1.0 200 OK\r\n\r\n{}", orders(2))));
    let place = place(&vendor);
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_connection_that_the_vendor_closes_between_two_polls_is_no_fault() {
    // It does not say that it will, as the balancers before many vendors do not.
    let vendor = Vendor::new(|_| {
        let body = orders(2);
        raw(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    });
    let place = place(&vendor);
    let running = place.start(&["run"]);
    until("it has polled some times", || {
        (vendor.count("/acme") >= 8).then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    for poll in place.polls("acme") {
        assert_eq!(poll["outcome"], "ok", "{poll}");
    }
}

#[test]
fn a_redirect_without_end_is_given_up() {
    let poll = between_good_ones(|_| answer(302, &[("location", "/acme/orders?again")], ""));
    is(&poll, "temporary", "redirect");
    assert_eq!(poll["calls"], 4, "{poll}");
}

#[test]
fn a_redirect_to_where_no_call_may_go_is_not_followed() {
    for location in [
        "file:///etc/passwd",
        "http://169.254.169.254/latest",
        "gopher://127.0.0.1/",
    ] {
        let poll = between_good_ones(move |_| answer(302, &[("location", location)], ""));
        assert_eq!(poll["class"], "temporary", "{location}: {poll}");
    }
}

#[test]
fn case_093_credentials_do_not_go_along_to_another_origin() {
    let other = Vendor::new(|_| json(orders(2)));
    let target = format!("{}/export?part=1", other.origin());
    let vendor = Vendor::new(move |_| {
        answer(
            302,
            &[("location", &target), ("set-cookie", "session=c00kie")],
            "",
        )
    });
    let auth = r#"auth = { bearer = { env = "ACME_TOKEN" } }"#;
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), auth)
    ))
    .env("ACME_TOKEN", "tok_XYZ");
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(place.keys("acme"), first_revisions(2));
    assert_eq!(
        vendor.asked()[0].header("authorization"),
        Some("Bearer tok_XYZ")
    );
    // The same host with another port is another origin.
    let asked = other.asked();
    assert_eq!(asked.len(), 1);
    for (name, value) in &asked[0].headers {
        assert!(name != "authorization" && name != "cookie", "{name}");
        assert!(
            !value.contains("tok_XYZ") && !value.contains("c00kie"),
            "{name}"
        );
    }
}

#[test]
fn case_037_a_vendor_that_never_answers_holds_up_nobody_else() {
    let vendor = Vendor::new(|asked| match asked.target.starts_with("/mute") {
        true => silence(),
        false => json(orders(2)),
    });
    let place = Place::new(&format!(
        "[host]\ntimeout = {{ connect = \"1s\", idle = \"1s\", total = \"2s\" }}\n{}{}{}{FILES}",
        connection("mute", &vendor.origin(), ""),
        connection("acme", &vendor.origin(), ""),
        connection("beta", &vendor.origin(), ""),
    ));
    let running = place.start(&["run"]);
    until("the mute one has been tried twice", || {
        (vendor.count("/mute") >= 2).then_some(())
    });
    // Two seconds of silence are ten turns of the others, of which a busy machine makes at least a few.
    for other in ["/acme", "/beta"] {
        assert!(vendor.count(other) > 3, "{other}: {}", vendor.count(other));
    }
    let polls = place.polls("mute");
    is(polls.last().unwrap(), "temporary", "timeout");
    vendor.script(|_| json(orders(2)));
    place.until_delivered("mute", 2);
    assert_eq!(running.stop().code(), 0);
    for connection in ["mute", "acme", "beta"] {
        assert_eq!(place.keys(connection), first_revisions(2), "{connection}");
    }
}

#[test]
fn a_refused_connection_is_temporary() {
    // A port that was just free and that nobody listens on.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let origin = format!("http://127.0.0.1:{port}");
    let place = Place::new(&format!("{}{FILES}", connection("acme", &origin, "")));
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 1, "{report}");
    let poll = place.polls("acme").swap_remove(0);
    is(&poll, "temporary", "connect");
    says(&poll, &port.to_string());
}

/// A whole host that meets this answer while another connection is well: what it said, and how much memory it took.
fn with_a_huge_body(bad: impl Fn() -> Act + Send + 'static) -> (Value, u64) {
    let vendor = Vendor::new(move |asked| match asked.target.starts_with("/huge") {
        true => bad(),
        false => json(orders(2)),
    });
    let place = Place::new(&format!(
        "{}{}{FILES}",
        connection("huge", &vendor.origin(), ""),
        connection("acme", &vendor.origin(), ""),
    ));
    let running = place.start(&["run"]);
    until("the huge one is asked", || {
        (vendor.count("/huge") > 0).then_some(())
    });
    let poll = until("the huge answer has been met three times", || {
        let polls = place.polls("huge");
        (polls.len() >= 3).then(|| polls.into_iter().next().unwrap())
    });
    let peak = running.peak_mib();
    place.until_delivered("acme", 2);
    assert_eq!(running.stop().code(), 0);
    assert!(place.keys("huge").is_empty());
    vendor.script(|_| json(orders(2)));
    // Parked or not: a person may ask for it again.
    place.ask(&["resume", "huge"]);
    assert_eq!(place.sync(&["huge"]).1, 0);
    assert_eq!(place.keys("huge"), first_revisions(2));
    (poll, peak)
}

#[test]
fn case_153_a_body_of_a_gigabyte_ends_at_the_limit() {
    let record = br#"{"id":1,"text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},"#;
    let piece: Vec<u8> = record.iter().copied().cycle().take(1 << 20).collect();
    for length in [None, Some(1 << 30)] {
        let piece = piece.clone();
        let (poll, peak) = with_a_huge_body(move || {
            let mut beginning = head(200, &[JSON], length);
            beginning.extend(br#"{"orders":["#);
            flood(beginning, piece.clone(), 1 << 10)
        });
        assert_eq!(poll["code"], "too-large", "{poll}");
        says(&poll, "larger than 16777216 bytes");
        assert!(peak < 150, "{peak} MiB");
    }
}

#[test]
fn a_head_of_a_gigabyte_ends_at_a_limit_too() {
    let line = format!("x-filler: {}\r\n", "a".repeat(1_000));
    let (poll, peak) = with_a_huge_body(move || {
        let beginning = b"HTTP/1.1 200 OK\r\n".to_vec();
        flood(beginning, line.clone().into_bytes(), 1 << 20)
    });
    is(&poll, "temporary", "broken");
    assert!(peak < 150, "{peak} MiB");
}

#[test]
fn case_153_a_megabyte_that_unfolds_to_a_gigabyte_ends_at_the_limit() {
    let member = gzip(&vec![b' '; 16 << 20]);
    let (poll, peak) = with_a_huge_body(move || {
        let beginning = head(200, &[JSON, ("content-encoding", "gzip")], None);
        flood(beginning, member.clone(), 64)
    });
    assert_eq!(poll["code"], "too-large", "{poll}");
    assert!(peak < 150, "{peak} MiB");
}
