//! The verbs while `weir run` holds the data directory, and what else wants it.

mod cli_support;

use cli_support::Place;

fn place() -> Place {
    let place = Place::new();
    place.write("weir.toml", "[host]\ndata = \"data\"\n");
    place.make("connectors");
    place
}

#[test]
fn a_second_host_is_refused_and_the_first_one_answers() {
    let place = place();
    let mut host = place.start(&["run"]);
    let second = place.weir(&["run"]);
    assert_eq!(second.exit, 1, "{second:?}");
    assert!(
        second.err.contains("weir: weir already runs on data"),
        "{second:?}"
    );

    let status = place.weir(&["status", "--json"]).json();
    assert_eq!(status["running"], host.id());
    assert_eq!(place.weir(&["sync"]).exit, 0);
    assert_eq!(place.weir(&["check"]).exit, 0);
    let unknown = place.weir(&["records", "shop"]);
    assert_eq!(unknown.exit, 2, "{unknown:?}");
    assert!(
        unknown.err.starts_with("weir: no unit is named shop"),
        "{unknown:?}"
    );

    assert_eq!(host.terminate(), 0);
    assert!(!place.dir().join("data/weir.sock").exists());
    let status = place.weir(&["status"]);
    assert!(
        status.out.starts_with("No weir runs on data."),
        "{status:?}"
    );
}

#[test]
fn a_host_that_was_killed_leaves_nothing_in_the_way() {
    let place = place();
    let mut host = place.start(&["run"]);
    host.kill();
    assert!(
        place.dir().join("data/weir.sock").exists(),
        "as a kill leaves it"
    );
    let status = place.weir(&["status", "--json"]);
    assert_eq!(status.exit, 0, "{status:?}");
    assert_eq!(status.json()["running"], serde_json::Value::Null);
    let mut again = place.start(&["run"]);
    assert_eq!(again.terminate(), 0);
}

#[test]
fn a_directory_that_is_held_without_a_host_is_waited_for_and_then_told() {
    let place = place();
    // Whoever holds the store's lock is not asked who it is.
    let store = weir::store::RedbStore::open(
        &place.dir().join("data/weir.redb"),
        weir::store::StoreOptions::default(),
    )
    .unwrap();
    let run = place.weir(&["status"]);
    assert_eq!(run.exit, 1, "{run:?}");
    assert!(
        run.err.starts_with("weir: another weir is at work on data"),
        "{run:?}"
    );
    drop(store);
    assert_eq!(place.weir(&["status"]).exit, 0);
}

#[test]
fn logs_are_json_lines_on_stderr_where_that_is_asked_for() {
    let place = place();
    let mut host = place.start(&["run", "--log-format", "json"]);
    assert_eq!(host.terminate(), 0);
    let err = host.errors();
    assert!(!err.is_empty());
    for line in err.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["message"].is_string(), "{line}");
    }
}

#[test]
fn what_is_checked_beside_a_running_host_is_the_file_and_not_what_the_host_remembers() {
    let place = place();
    let mut host = place.start(&["run"]);
    let wrong = "[host]\ndata = \"data\"\n[connection.zzz]\nconnector = \"nonexistent\"\n";
    place.write("other.toml", wrong);
    let check = place.weir(&["--config", "other.toml", "check", "--offline"]);
    assert_eq!(check.exit, 1, "{check:?}");
    assert!(
        check.out.contains("no connector `nonexistent`"),
        "{check:?}"
    );

    place.write("weir.toml", wrong);
    let check = place.weir(&["check", "--offline"]);
    assert_eq!(check.exit, 1, "{check:?}");
    assert!(
        check.out.contains("uses this one from its next start on"),
        "{check:?}"
    );
    assert_eq!(host.terminate(), 0);
}
