//! Pages, links and validators: a whole host walks lists that shift, end early, repeat or lie.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use support::script::{Asked, Reply, Script};
use support::shop::{
    USUAL, WINDOW, body, config, ids, listed, matching, ms, open, order, page, param, poll_at,
};
use weir::poll::Outcome;
use weir_rules::model::Class;

/// Orders `first..=last`, all of one time, as JSON.
fn numbered(numbers: impl IntoIterator<Item = u64>) -> String {
    let orders: Vec<String> = numbers
        .into_iter()
        .map(|n| format!(r#"{{"id":{n},"at":"2031-03-04T09:00:00Z"}}"#))
        .collect();
    orders.join(",")
}

fn number(asked: &Asked, name: &str) -> Option<u64> {
    param(asked, name).map(|text| text.parse().expect("a number"))
}

/// Six orders of one second and one after it; four to an answer, from `since` on, and behind `after` where it is given.
fn ties(asked: &Asked) -> Reply {
    let mut orders: Vec<_> = (1..=6)
        .map(|n| order(&format!("g{n}"), "09:00:00"))
        .collect();
    orders.push(order("h1", "09:00:01"));
    let since = param(asked, "since").map(|text| ms(&text));
    let after = param(asked, "after").unwrap_or_default();
    let mut found = matching(&orders, asked.at, since, None);
    found.retain(|order| Some(order.at) != since || order.id > after);
    found.truncate(4);
    listed(&found, "")
}

#[tokio::test]
async fn case_077_ties_that_fill_a_page_are_passed_by_id_or_said() {
    let stream = |paging: &str| {
        format!(
            "order = \"ascending\"\npage_size = 4\nwindow = {{ since = \"since\" }}\npaging = {{ style = \"keyset\", {paging} }}"
        )
    };
    let script = Script::by(ties);
    let by_id = stream(r#"after_time = "since", after_id = "after""#);
    let rig = open(&config(&by_id, USUAL), &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!(ids(&rig), ["g1", "g2", "g3", "g4", "g5", "g6", "h1"]);

    // Without the id: what can be reached, h1 too, and the poll says that there was more.
    let script = Script::by(ties);
    let by_time = stream(r#"after_time = "since""#);
    let rig = open(&config(&by_time, USUAL), &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Truncated);
    assert_eq!(ids(&rig), ["g1", "g2", "g3", "g4", "h1"]);
    assert!(script.asked().len() < 10, "no endless loop");
    assert_ne!(report.message, None);
}

#[tokio::test]
async fn case_081_a_page_that_the_vendor_caps_is_not_the_last() {
    let stream = r#"
paging = { style = "offset", param = "offset" }
page_size = 5000
page_size_param = "limit"
"#;
    let script = Script::by(|asked| {
        let offset = number(asked, "offset").unwrap_or(0);
        assert_eq!(number(asked, "limit"), Some(5000));
        body(&numbered(offset + 1..=2500.min(offset + 1000)), "")
    });
    let rig = open(&config(stream, USUAL), &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 2500));
    let offsets: Vec<_> = script
        .asked()
        .iter()
        .map(|asked| number(asked, "offset"))
        .collect();
    assert_eq!(offsets[..3], [Some(0), Some(1000), Some(2000)]);
}

#[tokio::test]
async fn case_083_a_deletion_between_two_pages_hides_a_record_for_one_poll_at_most() {
    let listing = "paging = { style = \"offset\", param = \"offset\" }\npage_size = 2\n";
    let windowed = format!("{listing}window = {{ since = \"since\" }}\n");
    let counted = format!("{windowed}total = \"/total\"\n");
    // Read whole each time; from a window, inside its overlap; outside of it, where the vendor's total has changed.
    for (stream, time) in [
        (listing, "09:00:00"),
        (&*windowed, "09:59:00"),
        (&*counted, "09:00:00"),
    ] {
        let at = ms(time);
        let mut calls = 0;
        let script = Script::by(move |asked| {
            calls += 1;
            // Order 1 is deleted after the first page.
            let first = if calls == 1 { 1 } else { 2 };
            let since = param(asked, "since").map(|text| ms(&text));
            let orders: Vec<_> = (first..=6)
                .map(|n| support::shop::Order {
                    id: n.to_string(),
                    // The last one is new.
                    at: if n == 6 { ms("09:59:30") } else { at },
                    shown: at,
                })
                .collect();
            let found = matching(&orders, asked.at, since, None);
            let offset = usize::try_from(number(asked, "offset").unwrap_or(0)).expect("small");
            let part: Vec<_> = found.iter().skip(offset).take(2).copied().collect();
            listed(&part, &format!(r#""total":{}"#, found.len()))
        });
        let rig = open(&config(stream, USUAL), &script).await;
        rig.poll("shop/orders").await;
        assert_eq!(ids(&rig), ["1", "2", "4", "5", "6"], "{stream}");
        rig.poll("shop/orders").await;
        assert_eq!(ids(&rig), ["1", "2", "3", "4", "5", "6"], "{stream}");
    }
}

#[tokio::test]
async fn case_091_a_page_number_is_not_kept_for_another_page_size() {
    let stream = "paging = { style = \"page\", param = \"page\" }\npage_size_param = \"size\"\n";
    let pages = |asked: &Asked| {
        let size = number(asked, "size").expect("a size");
        let from = (number(asked, "page").expect("a page") - 1) * size;
        body(&numbered(from + 1..=400.min(from + size)), "")
    };
    let first = |size: u64| body(&numbered(1..=size), "");
    let script = Script::by(pages);
    script.then([first(25), body(&numbered(26..=50), ""), Reply::broken()]);
    let with = |size: u32| config(stream, &format!("page_size = {size}\n{USUAL}"));
    let rig = open(&with(25), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered().len(), 50);
    assert!(script.asked()[2].url.contains("page=3"));
    let rig = rig.restart_with(&with(100)).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    let again = &script.asked()[3];
    assert_eq!(
        (number(again, "page"), number(again, "size")),
        (Some(1), Some(100))
    );
    let mut all = ids(&rig);
    all.dedup();
    assert_eq!((all.len(), rig.delivered().len()), (400, 400), "each once");
}

#[tokio::test]
async fn case_095_a_plain_link_is_followed_encrypted() {
    // The choice: the link gets the scheme and port of the configured origin.
    let stream = "paging = { style = \"link\" }\npage_size = 1\n";
    let behind_a_proxy = config(stream, USUAL).replace(
        "https://shop.example.test/v1",
        "https://api.example.test:8443",
    );
    let script = Script::new([
        page(&[("1", "09:00:00")], "").header(
            "link",
            r#"<http://api.example.test/orders?page=2>; rel="next""#,
        ),
        page(&[("2", "09:00:00")], ""),
    ]);
    let rig = open(&behind_a_proxy, &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["1@1", "2@1"]);
    assert_eq!(
        script.asked()[1].url,
        "https://api.example.test:8443/orders?page=2"
    );
    assert!(
        script
            .asked()
            .iter()
            .all(|asked| !asked.secret_headers.is_empty())
    );
}

#[tokio::test]
async fn case_095_a_link_to_another_host_is_an_error_that_names_it() {
    let stream = "paging = { style = \"link\" }\npage_size = 1\n";
    let script = Script::new([page(&[("1", "09:00:00")], "").header(
        "link",
        r#"<https://elsewhere.example.test/orders?page=2>; rel="next""#,
    )]);
    let rig = open(&config(stream, USUAL), &script).await;
    let report = rig.poll("shop/orders").await;
    assert!(
        !report.outcome.is_good(),
        "not a silent end after page 1: {report:?}"
    );
    assert_eq!(script.asked().len(), 1);
    let row = rig.polls().remove(0);
    let said = row.message.unwrap_or_default();
    assert!(said.contains("elsewhere.example.test"), "{said}");
}

/// A list of three pages by link; each page has its own tag, and says 304 to it.
fn tagged(asked: &Asked, last: &str) -> Reply {
    let number = number(asked, "page").unwrap_or(1);
    let (orders, tag) = match number {
        1 => ([("1", "a"), ("2", "a")], "\"p1\"".to_owned()),
        2 => ([("3", "a"), ("4", "a")], "\"p2\"".to_owned()),
        _ => ([("5", "a"), ("6", last)], format!("\"p3-{last}\"")),
    };
    if asked.header("if-none-match") == Some(&tag) {
        return Reply::status(304, "").header("etag", &tag);
    }
    let orders = orders.map(|(id, text)| format!(r#"{{"id":"{id}","text":"{text}"}}"#));
    let page = body(&orders.join(","), "").header("etag", &tag);
    if number == 3 {
        return page;
    }
    let next = number + 1;
    page.header(
        "link",
        &format!("<https://shop.example.test/v1/orders?page={next}>; rel=\"next\""),
    )
}

#[tokio::test]
async fn case_101_the_tag_of_page_one_does_not_speak_for_page_three() {
    let stream = "paging = { style = \"link\" }\npage_size = 2\n";
    let mut polls = 0;
    let script = Script::by(move |asked| {
        polls += u32::from(number(asked, "page").is_none());
        tagged(asked, if polls < 3 { "a" } else { "b" })
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll("shop/orders").await;
    let report = rig.poll("shop/orders").await;
    assert!(report.outcome.is_good());
    assert_eq!(report.tally.new + report.tally.changed, 0);
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!(report.tally.changed, 1);
    assert_eq!(rig.delivered().last().map(String::as_str), Some("6@2"));
    // No tag was sent for a page that it did not come with, and each of the first two pages has its own.
    let sent = |page: &str| {
        let own = |asked: &Asked| {
            asked
                .header("if-none-match")
                .is_some_and(|tag| tag.starts_with(page))
        };
        script.asked().iter().any(own)
    };
    assert!(sent("\"p1") && sent("\"p2"), "{:?}", script.asked());
    for asked in script.asked() {
        let own = number(&asked, "page").unwrap_or(1);
        if let Some(tag) = asked.header("if-none-match") {
            assert!(
                tag.starts_with(&format!("\"p{own}")),
                "{tag} for page {own}"
            );
        }
    }
}

#[tokio::test]
async fn case_103_a_tag_goes_back_byte_for_byte_and_the_same_body_is_no_news() {
    let tags = ["\"abc-gzip\"", "W/\"123--gzip\"", "\"a,b\""];
    // 200 with the same body each time, under another tag.
    let script = Script::new(
        tags.into_iter()
            .chain(["\"end\""])
            .map(|tag| page(&[("1", "09:00:00")], "").header("etag", tag)),
    );
    let rig = open(&config("", USUAL), &script).await;
    for _ in 0..4 {
        assert_eq!(rig.poll("shop/orders").await.outcome, Outcome::Ok);
    }
    let sent: Vec<_> = script
        .asked()
        .into_iter()
        .map(|asked| asked.header("if-none-match").map(str::to_owned))
        .collect();
    assert_eq!(sent[0], None);
    assert_eq!(sent[1..], tags.map(|tag| Some(tag.to_owned())));
    assert_eq!(rig.delivered(), ["1@1"]);
}

#[tokio::test]
async fn case_171_the_id_mark_of_one_window_is_not_kept_for_the_next() {
    let stream = r#"
order = "ascending"
window = { since = "since", until = "until" }
window_cap = "31d"
paging = { style = "keyset", after_id = "since_id" }
page_size = 2
"#;
    let script = Script::by(|asked| {
        let orders = [
            ("700", "2031-01-10T00:00:00Z"),
            ("800", "2031-01-20T00:00:00Z"),
            ("900", "2031-01-30T00:00:00Z"),
            ("120", "2031-02-05T00:00:00Z"),
            ("340", "2031-02-06T00:00:00Z"),
            ("950", "2031-02-07T00:00:00Z"),
        ];
        let bound = |name| param(asked, name).map(|text| ms(&text));
        let orders: Vec<_> = orders.iter().map(|(id, at)| order(id, at)).collect();
        let mut found = matching(&orders, asked.at, bound("since"), bound("until"));
        let after = number(asked, "since_id").unwrap_or(0);
        let id = |order: &support::shop::Order| order.id.parse::<u64>().expect("a number");
        found.retain(|order| id(order) > after);
        found.sort_by_key(|order| id(order));
        found.truncate(2);
        listed(&found, "")
    });
    let settings = format!("start = 2031-01-01\n{USUAL}");
    let rig = open(&config(stream, &settings), &script).await;
    while rig.poll("shop/orders").await.more {}
    assert_eq!(ids(&rig), ["120", "340", "700", "800", "900", "950"]);
    let second = script
        .asked()
        .into_iter()
        .find(|asked| param(asked, "since").is_some_and(|since| since.starts_with("2031-02")))
        .expect("a second window");
    assert_eq!(param(&second, "since_id"), None);
}

#[tokio::test]
async fn case_097_a_page_that_became_full_leads_to_the_new_one() {
    // Thirty orders fill the only page; the thirty-first is on a page that its tag says nothing of.
    let stream = "paging = { style = \"page\", param = \"page\" }\npage_size = 30\n";
    let mut polls = 0;
    let script = Script::by(move |asked| {
        let page = number(asked, "page").unwrap_or(1);
        polls += u32::from(page == 1);
        let last = if polls == 1 { 30 } else { 31 };
        let from = (page - 1) * 30;
        let tag = format!("\"{page}-{}\"", last.min(page * 30));
        if asked.header("if-none-match") == Some(&tag) {
            return Reply::status(304, "");
        }
        body(&numbered(from + 1..=last.min(from + 30)), "").header("etag", &tag)
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered().len(), 30);
    poll_at(&rig, "10:01:00").await;
    assert_eq!(rig.delivered().len(), 31);
}

#[tokio::test]
async fn case_075_pages_that_never_end_end_here() {
    // Seven records, pages of three, and the last cursor for ever.
    let stream = format!("{WINDOW}page_size = 3\n");
    let script = Script::by(|_| page(&[], r#""next":"c7""#));
    let at = "09:00:00";
    script.then([
        page(&[("1", at), ("2", at), ("3", at)], r#""next":"c3""#),
        page(&[("4", at), ("5", at), ("6", at)], r#""next":"c6""#),
        page(&[("7", at)], r#""next":"c7""#),
    ]);
    let rig = open(&config(&stream, USUAL), &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 7));
    assert!(script.asked().len() <= 5, "at most two past the end");
}

#[tokio::test]
async fn case_087_a_page_token_that_did_not_survive_a_restart_costs_nothing() {
    for code in ["INVALID_PAGE_TOKEN", "EXPIRED_PAGE_TOKEN"] {
        let config = format!(
            "{}{}",
            config(WINDOW, USUAL),
            "[[connection.shop.config.errors]]\nstatus = 400\npointer = \"/error\"\nequals = [\"INVALID_PAGE_TOKEN\", \"EXPIRED_PAGE_TOKEN\"]\nclass = \"position-lost\"\n"
        );
        let first = page(&[("a", "09:01:00"), ("b", "09:02:00")], r#""next":"t2""#);
        let script = Script::by(|_| page(&[], ""));
        script.then([first.clone(), Reply::refused()]);
        let rig = open(&config, &script).await;
        rig.poll("shop/orders").await;
        let rig = rig.crash().await;
        script.then([
            Reply::status(400, format!(r#"{{"error":"{code}"}}"#)),
            first,
            page(&[("c", "09:03:00")], ""),
        ]);
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.class, Some(Class::PositionLost), "{code}");
        // Due at once.
        rig.settle().await;
        assert_eq!(rig.delivered(), ["a@1", "b@1", "c@1"]);
        assert_eq!(param(&script.asked()[2], "token").as_deref(), Some("t2"));
        assert_eq!(param(&script.asked()[3], "token"), None);
        assert_eq!(rig.host.sign_in.needed("shop"), None);
    }
}
