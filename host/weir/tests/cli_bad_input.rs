//! What the command line says to bad input: one message that names what, where and what to do, and the exit code.

mod cli_support;

use cli_support::Place;

const NO_CONNECTION: &str = "[host]\ndata = \"data\"\n";

#[test]
fn without_a_configuration_it_says_how_to_begin() {
    let place = Place::new();
    let run = place.weir(&["status"]);
    assert_eq!(run.exit, 1, "{run:?}");
    assert!(
        run.err.starts_with("weir: there is no weir.toml"),
        "{run:?}"
    );
    assert!(run.err.contains("[connection.hn]"), "{run:?}");
    assert!(!run.err.contains("os error"), "{run:?}");
    assert!(run.out.is_empty(), "{run:?}");
}

#[test]
fn every_error_of_a_configuration_is_told_with_line_and_nearest_key() {
    let place = Place::new();
    place.write(
        "weir.toml",
        "[host]\ndata = \"data\"\nworker = 2\nconcurrency = \"many\"\n",
    );
    let run = place.weir(&["run"]);
    assert_eq!(run.exit, 1, "{run:?}");
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert!(
        lines[0].starts_with("weir: weir.toml:3: host.worker"),
        "{run:?}"
    );
    assert!(lines[0].contains("did you mean workers?"), "{run:?}");
    assert!(
        lines[1].starts_with("weir: weir.toml:4: host.concurrency"),
        "{run:?}"
    );
    assert!(!place.dir().join("data").exists(), "nothing was begun");
}

#[test]
fn a_missing_variable_is_named() {
    let place = Place::new();
    place.write(
        "weir.toml",
        "[connection.oss]\nconnector = \"github\"\nauth = { bearer = { env = \"WEIR_TEST_NO_SUCH\" } }\n",
    );
    let run = place.weir(&["check"]);
    assert_eq!(run.exit, 1, "{run:?}");
    assert!(
        run.out.contains("FAILED weir.toml:3: connection.oss.auth"),
        "{run:?}"
    );
    assert!(run.out.contains("WEIR_TEST_NO_SUCH is not set"), "{run:?}");
    assert!(run.out.contains("export WEIR_TEST_NO_SUCH="), "{run:?}");
}

#[test]
fn a_missing_directory_of_connectors_is_named_with_the_way_out() {
    let place = Place::new();
    place.write("weir.toml", NO_CONNECTION);
    for verb in ["sync", "connectors", "check"] {
        let run = place.weir(&[verb]);
        assert_eq!(run.exit, 1, "{verb} {run:?}");
        assert!(run.err.contains("connectors: "), "{verb} {run:?}");
        assert!(run.err.contains("create it"), "{verb} {run:?}");
    }
}

#[test]
fn a_file_that_is_no_connector_is_named_and_the_rest_goes_on() {
    let place = Place::new();
    place.write("weir.toml", NO_CONNECTION);
    place.write("connectors/junk.wasm", "<html>not found</html>");
    let listed = place.weir(&["connectors"]);
    assert_eq!(listed.exit, 1, "{listed:?}");
    assert!(
        listed
            .out
            .contains("connectors/junk.wasm: this is no WebAssembly file"),
        "{listed:?}"
    );
    let json = place.weir(&["connectors", "--json"]).json();
    assert_eq!(json["failing"][0]["file"], "connectors/junk.wasm");
    let checked = place.weir(&["check", "--offline"]);
    assert_eq!(checked.exit, 1, "{checked:?}");
    assert!(
        checked
            .out
            .contains("FAILED connectors/junk.wasm: this is no WebAssembly"),
        "{checked:?}"
    );
    let status = place.weir(&["status"]);
    assert_eq!(status.exit, 3, "{status:?}");
    assert!(
        status.out.contains("does not load: connectors/junk.wasm"),
        "{status:?}"
    );
    assert_eq!(place.weir(&["sync"]).exit, 0);
}

#[test]
fn a_connector_that_is_not_there_is_a_failed_check_and_a_failed_sync() {
    let place = Place::new();
    place.write("weir.toml", "[connection.shop]\nconnector = \"shopp\"\n");
    place.make("connectors");
    let checked = place.weir(&["check"]);
    assert_eq!(checked.exit, 1, "{checked:?}");
    assert!(
        checked
            .out
            .contains("FAILED connection shop: no connector `shopp` in connectors"),
        "{checked:?}"
    );
    let synced = place.weir(&["sync", "--json"]);
    assert_eq!(synced.exit, 1, "{synced:?}");
    // The configuration has no sink, so stdout is for records, and the report is on stderr.
    assert!(synced.out.is_empty(), "{synced:?}");
    let report: serde_json::Value = serde_json::from_str(synced.err.trim()).unwrap();
    assert_eq!(report["left_out"][0]["connection"], "shop");
}

#[test]
fn names_that_nothing_has_come_with_those_that_there_are() {
    let place = Place::new();
    place.write("weir.toml", "[connection.shop]\nconnector = \"rest\"\n");
    place.make("connectors");
    for verb in [&["sync", "shpo"][..], &["resume", "shpo"]] {
        let run = place.weir(verb);
        assert_eq!(run.exit, 2, "{run:?}");
        assert_eq!(
            run.err,
            "weir: no connection is named shpo in weir.toml: did you mean shop? Known here: shop\n",
        );
    }
    let run = place.weir(&["records", "shop/orders"]);
    assert_eq!(run.exit, 2, "{run:?}");
    assert!(
        run.err
            .contains("no unit is named shop/orders: no unit is known yet"),
        "{run:?}"
    );
    let run = place.weir(&["connectors", "githb"]);
    assert_eq!(run.exit, 2, "{run:?}");
    assert!(run.err.contains("no connector `githb`"), "{run:?}");
}

#[test]
fn a_damaged_store_is_named_and_left_as_it_is() {
    let place = Place::new();
    place.write("weir.toml", NO_CONNECTION);
    place.make("connectors");
    place.write("data/weir.redb", "not a store at all");
    for verb in ["status", "run", "sync"] {
        let run = place.weir(&[verb]);
        assert_eq!(run.exit, 1, "{verb} {run:?}");
        assert!(
            run.err
                .contains("weir: data/weir.redb is damaged or not a weir store"),
            "{verb} {run:?}"
        );
    }
    assert_eq!(place.read("data/weir.redb"), "not a store at all");
}

#[test]
fn wrong_use_is_exit_code_2() {
    let place = Place::new();
    for line in [
        &["polll"][..],
        &["records", "--limit", "x"],
        &["sync", "--wait", "1"],
        &[],
    ] {
        let run = place.weir(line);
        assert_eq!(run.exit, 2, "{line:?} {run:?}");
        assert!(run.out.is_empty(), "{run:?}");
    }
}

#[test]
fn connectors_can_be_listed_without_a_configuration() {
    let place = Place::new();
    place.make("elsewhere");
    let run = place.weir(&["connectors", "--connectors", "elsewhere"]);
    assert_eq!(
        (run.exit, run.out.as_str()),
        (0, "No connector in elsewhere.\n")
    );
    place.write("weir.toml", "this is = not [toml");
    let run = place.weir(&["connectors", "--connectors", "elsewhere"]);
    assert_eq!(run.exit, 0, "{run:?}");
}
