//! Streams below streams: a unit for each record of the stream above.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::script::{Reply, Script};
use support::{NOW, Rig};
use weir::poll::Outcome;
use weir::store::{Commit, Conclusion, Dedup, PreparedRecord, RecordData, Ticket, UnitId, UnitKey};

/// Rooms, their messages, and what was answered to each message.
const CHAT: &str = r#"
[connection.chat]
connector = "rest"

[connection.chat.config]
base_url = "https://chat.example.test"

[connection.chat.config.streams.rooms]
path = "/rooms"
id = "/id"
deleted = "/gone"

[connection.chat.config.streams.messages]
path = "/rooms/{parent.id}/messages"
id = "/id"
parent = "rooms"

[connection.chat.config.streams.messages.query]
topic = "{parent.topic}"

[connection.chat.config.streams.answers]
path = "/messages/{partition}/answers"
id = "/id"
parent = "messages"

[connection.chat.streams.rooms]
interval = { min = "60s", max = "60s" }
[connection.chat.streams.messages]
interval = { min = "60s", max = "60s" }
[connection.chat.streams.answers]
interval = { min = "60s", max = "60s" }
"#;

const SECOND: u64 = 1_000;

/// What the vendor's rooms are, by the turn of the test.
const ROOMS: [&str; 6] = [
    r#"[{"id":"a","topic":"wood"}]"#,
    r#"[{"id":"a","topic":"stone"},{"id":"b","topic":"iron"}]"#,
    r#"[{"id":"a","topic":"stone","gone":true},{"id":"b","topic":"iron"}]"#,
    r#"[{"id":"a","topic":"sand"},{"id":"b","topic":"iron"}]"#,
    r#"[{"id":"b","topic":"iron"}]"#,
    r#"[{"id":"b","topic":"iron"},{"id":"","topic":"none"}]"#,
];

fn vendor(turn: &Arc<AtomicUsize>) -> Arc<Script> {
    let turn = turn.clone();
    Script::by(move |asked| {
        let path = asked.url.split('?').next().unwrap_or_default();
        let path = path.trim_start_matches("https://chat.example.test");
        Reply::ok(match path {
            "/rooms" => ROOMS[turn.load(Ordering::Relaxed)].to_owned(),
            "/rooms/a/messages" => r#"[{"id":"m1"},{"id":"m2"}]"#.to_owned(),
            "/rooms/b/messages" => r#"[{"id":"m1"}]"#.to_owned(),
            "/messages/m1/answers" => r#"[{"id":"yes"}]"#.to_owned(),
            _ => "[]".to_owned(),
        })
    })
}

async fn chat(turn: &Arc<AtomicUsize>) -> (Rig, Arc<Script>) {
    let script = vendor(turn);
    let rig = Rig::new(CHAT, script.clone()).await;
    script.on(&rig.clock);
    (rig, script)
}

fn units(rig: &Rig) -> Vec<String> {
    let mut names = Vec::new();
    rig.host
        .store
        .for_each_unit(&mut |unit| names.push(unit.key.to_string()))
        .unwrap();
    names.sort();
    names
}

fn unit_of(rig: &Rig, name: &str) -> UnitId {
    let mut found = None;
    rig.host
        .store
        .for_each_unit(&mut |unit| {
            if unit.key.to_string() == name {
                found = Some(unit.id);
            }
        })
        .unwrap();
    found.expect("there is such a unit")
}

fn messages_asked(script: &Script, room: &str) -> Vec<String> {
    let path = format!("/rooms/{room}/messages");
    let asked = script.asked();
    let of_room = asked.iter().filter(|asked| asked.url.contains(&path));
    of_room
        .map(|asked| asked.url.split("topic=").nth(1).unwrap_or("").to_owned())
        .collect()
}

#[tokio::test]
async fn each_record_above_has_units_below_and_two_rooms_messages_are_kept_apart() {
    let turn = Arc::new(AtomicUsize::new(0));
    let (rig, script) = chat(&turn).await;
    assert_eq!(units(&rig), ["chat/rooms"]);
    rig.run_for(300 * SECOND).await;
    assert_eq!(
        units(&rig),
        [
            "chat/answers/a/m1",
            "chat/answers/a/m2",
            "chat/messages/a",
            "chat/rooms"
        ]
    );
    assert_eq!(messages_asked(&script, "a")[0], "wood");

    // The room's topic changes, and there is another one.
    turn.store(1, Ordering::Relaxed);
    rig.run_for(300 * SECOND).await;
    assert_eq!(messages_asked(&script, "a").last().unwrap(), "stone");
    assert_eq!(messages_asked(&script, "b")[0], "iron");
    let names = units(&rig);
    assert!(names.contains(&"chat/answers/b/m1".to_owned()), "{names:?}");
    let mut delivered = rig.delivered();
    delivered.sort();
    // m1 of either room, and the answers to either: one key each.
    assert_eq!(
        delivered,
        [
            "a@1", "a@2", "b@1", "m1@1", "m1@1", "m2@1", "yes@1", "yes@1"
        ]
    );
}

#[tokio::test]
async fn the_units_of_a_deleted_record_rest_and_come_back_with_it() {
    let turn = Arc::new(AtomicUsize::new(1));
    let (rig, script) = chat(&turn).await;
    rig.run_for(300 * SECOND).await;
    assert!(!messages_asked(&script, "a").is_empty());
    turn.store(2, Ordering::Relaxed);
    rig.run_for(120 * SECOND).await;
    let before = messages_asked(&script, "a").len();
    let others = messages_asked(&script, "b").len();
    rig.run_for(600 * SECOND).await;
    assert_eq!(messages_asked(&script, "a").len(), before);
    assert!(messages_asked(&script, "b").len() > others);
    turn.store(3, Ordering::Relaxed);
    rig.run_for(300 * SECOND).await;
    assert_eq!(messages_asked(&script, "a").last().unwrap(), "sand");
}

/// Many vendors drop from a list what is gone, and say nothing else.
#[tokio::test]
async fn the_units_of_a_record_that_is_no_longer_listed_rest_and_come_back_with_it() {
    let turn = Arc::new(AtomicUsize::new(1));
    let (rig, script) = chat(&turn).await;
    rig.run_for(300 * SECOND).await;
    let delivered = rig.delivered().len();
    turn.store(4, Ordering::Relaxed);
    rig.run_for(120 * SECOND).await;
    let (before, others) = (
        messages_asked(&script, "a").len(),
        messages_asked(&script, "b").len(),
    );
    rig.run_for(600 * SECOND).await;
    assert_eq!(messages_asked(&script, "a").len(), before);
    assert!(messages_asked(&script, "b").len() > others);
    assert_eq!(
        rig.delivered().len(),
        delivered,
        "nobody said that anything was deleted"
    );

    // A host that starts again leaves them alone, too.
    let rig = rig.crash().await;
    rig.run_for(300 * SECOND).await;
    assert_eq!(messages_asked(&script, "a").len(), before);

    turn.store(3, Ordering::Relaxed);
    rig.run_for(300 * SECOND).await;
    assert_eq!(messages_asked(&script, "a").last().unwrap(), "sand");
    assert!(
        rig.host
            .store
            .unit(unit_of(&rig, "chat/answers/a/m1"))
            .unwrap()
            .unwrap()
            .due
            .is_some()
    );
}

/// A listing with a record that cannot be read does not say what is missing.
#[tokio::test]
async fn a_listing_that_was_not_read_whole_lets_nothing_rest() {
    let turn = Arc::new(AtomicUsize::new(1));
    let (rig, script) = chat(&turn).await;
    rig.run_for(300 * SECOND).await;
    turn.store(5, Ordering::Relaxed);
    rig.run_for(120 * SECOND).await;
    let before = messages_asked(&script, "a").len();
    rig.run_for(300 * SECOND).await;
    assert!(messages_asked(&script, "a").len() > before);
}

#[tokio::test]
async fn a_host_that_starts_again_goes_on_with_the_units_below() {
    let turn = Arc::new(AtomicUsize::new(1));
    let (rig, script) = chat(&turn).await;
    rig.run_for(300 * SECOND).await;
    let before = messages_asked(&script, "b").len();
    let delivered = rig.delivered().len();
    let rig = rig.crash().await;
    rig.run_for(300 * SECOND).await;
    assert!(messages_asked(&script, "b").len() > before);
    assert_eq!(
        rig.delivered().len(),
        delivered,
        "nothing is delivered anew"
    );
    let report = rig.poll("chat/answers/b/m1").await;
    assert_eq!(report.outcome, Outcome::Ok);
}

#[tokio::test]
async fn children_whose_making_was_cut_off_are_made_at_the_next_start() {
    let turn = Arc::new(AtomicUsize::new(0));
    let (rig, _) = chat(&turn).await;
    // As a crash between the page and its units leaves it: the text is there, the units are not.
    let rooms = UnitKey {
        connection: "chat".into(),
        stream: "rooms".into(),
        partition: None,
    };
    let id = rig
        .host
        .store
        .ensure_unit(&rooms)
        .await
        .unwrap()
        .unwrap()
        .id;
    let record = PreparedRecord {
        id: "z".into(),
        hash: [7; 32],
        updated_at: None,
        deleted: false,
        data: RecordData::Text(r#"{"id":"z","topic":"glass"}"#.into()),
    };
    let page = Commit {
        unit: id,
        ticket: Ticket(u64::MAX),
        seen_at: NOW,
        records: vec![record],
        unlisted: Vec::new(),
        validators: Vec::new(),
        budgets: Vec::new(),
        dedup: Dedup {
            keep: true,
            ..Dedup::default()
        },
        conclude: Box::new(|_| Conclusion::default()),
    };
    let seen = rig.host.store.commit(page).await.unwrap().unwrap();
    assert_eq!(seen.born, ["z"]);
    assert!(!units(&rig).contains(&"chat/messages/z".to_owned()));
    let rig = rig.crash().await;
    assert!(units(&rig).contains(&"chat/messages/z".to_owned()));
}

#[tokio::test]
async fn a_stream_whose_stream_above_is_not_polled_is_refused_with_the_way_out() {
    let script = vendor(&Arc::new(AtomicUsize::new(0)));
    let config = CHAT.replace(
        "[connection.chat.streams.rooms]\ninterval = { min = \"60s\", max = \"60s\" }",
        "[connection.chat.streams.rooms]\nenabled = false",
    );
    let started = tokio::spawn(async move { Rig::new(&config, script).await });
    let panic = started.await.err().expect("it does not start").into_panic();
    let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(
        why.contains(
            "stream messages is polled once for each record of rooms, which is not polled"
        ),
        "{why}"
    );
    assert!(why.contains("streams.rooms = {}"), "{why}");
}
