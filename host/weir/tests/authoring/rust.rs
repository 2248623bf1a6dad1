//! From `weir new` to a component, through the binary: one build, in the folder where the connectors are built.

use std::path::PathBuf;

use crate::cli_support::Place;

/// The connectors' target directory: what a new one depends on has been built there.
fn target() -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || root.join("target"),
        |directory| root.join(PathBuf::from(directory)),
    );
    target.join("connectors")
}

#[test]
fn a_new_connector_builds_passes_its_test_and_loads() {
    let place = Place::new();
    let target = target();
    let with = [
        ("CARGO_TARGET_DIR", target.to_str().unwrap()),
        ("CARGO_NET_OFFLINE", "true"),
    ];
    let made = place.weir(&["new", "acme-orders"]);
    assert_eq!(made.exit, 0, "{made:?}");
    assert!(made.out.contains("cd acme-orders && weir test"), "{made:?}");
    let again = place.weir(&["new", "acme-orders"]);
    assert_eq!(again.exit, 2, "{again:?}");
    assert!(again.err.contains("exists already"), "{again:?}");

    let tested = place.weir_with(&["test", "acme-orders"], &with);
    assert_eq!(tested.exit, 0, "{}\n{}", tested.out, tested.err);
    for line in [
        "walk two_pages",
        "walk limited",
        "hostile answers",
        "1 stream walked",
    ] {
        assert!(tested.out.contains(line), "{line}: {}", tested.out);
    }

    // Its component is there, and a host takes it.
    let listed = place.weir(&[
        "connectors",
        "acme-orders",
        "--connectors",
        "acme-orders/dist",
        "--json",
    ]);
    assert_eq!(listed.exit, 0, "{listed:?}");

    // It keeps every promise against the vendor that is described beside it, and one that forgets its pages does not.
    let simulate = [
        "simulate",
        "acme-orders",
        "--days",
        "0.05",
        "--seeds",
        "1..3",
    ];
    let kept = place.weir_with(&simulate, &with);
    assert_eq!(kept.exit, 0, "{}\n{}", kept.out, kept.err);
    assert!(
        kept.out.contains("every promise was kept: 3 seeds"),
        "{kept:?}"
    );
    let source = "acme-orders/src/lib.rs";
    let right = place.read(source);
    let forgetful = right.replace(
        "page.next_if(paging::Token::next(listing.outside(0)))",
        "page",
    );
    assert_ne!(forgetful, right);
    place.write(source, &forgetful);
    let broken = place.weir_with(&simulate, &with);
    assert_eq!(broken.exit, 1, "{}\n{}", broken.out, broken.err);
    assert!(
        broken
            .out
            .contains("not kept: what the vendor shows is delivered"),
        "{}",
        broken.out
    );
    place.write(source, &right);
    assert_eq!(place.weir_with(&["build", "acme-orders"], &with).exit, 0);

    // What has changed is shown, and accepted.
    let file = "acme-orders/walks/limited.json";
    let right = place.read(file);
    place.write(file, &right.replace("rate-limited", "temporary"));
    let component = ["--component", "acme-orders/dist/acme-orders.wasm"];
    let test = ["test", "acme-orders"];
    let differs = place.weir(&[test, component].concat());
    assert_eq!(differs.exit, 1, "{differs:?}");
    assert!(
        differs.out.contains("+  \"fault\"")
            || differs.out.contains("+    \"class\": \"rate-limited\""),
        "{}",
        differs.out
    );
    let accepted = place.weir(&[&test[..], &component, &["--update"]].concat());
    assert_eq!(accepted.exit, 0, "{accepted:?}");
    assert_eq!(
        place.read(file),
        right,
        "the template's own walks are laid out as --update would"
    );
}

#[test]
fn a_directory_without_a_connector_says_how_to_begin() {
    let place = Place::new();
    for verb in ["build", "test"] {
        let ran = place.weir(&[verb]);
        assert_eq!(ran.exit, 1, "{ran:?}");
        assert!(ran.err.contains("weir new NAME"), "{ran:?}");
    }
    let wrong = place.weir(&["new", "No Name"]);
    assert_eq!(wrong.exit, 2, "{wrong:?}");
}
