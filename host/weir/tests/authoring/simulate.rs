//! Connectors against the vendors that are described beside them.

use std::path::{Path, PathBuf};

use crate::cli_support::Place;
use crate::connectors::built;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../connectors")
}

/// By page number, by cursor that outlives the poll, newest first behind the last id, by link.
#[test]
fn described_vendors_find_nothing_lost_in_their_connectors() {
    let place = Place::new();
    let mut paging = Vec::new();
    for entry in std::fs::read_dir(sources()).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(vendor) = std::fs::read_to_string(dir.join("vendor.toml")) else {
            continue;
        };
        let styles = vendor.lines().filter(|line| line.starts_with("paging = "));
        paging.extend(styles.filter_map(|line| line.split('"').nth(1).map(str::to_owned)));
        let name = dir.file_name().unwrap().to_str().unwrap();
        let component = built().join(format!("{name}.wasm"));
        let ran = place.weir(&[
            "simulate",
            dir.to_str().unwrap(),
            "--connector",
            component.to_str().unwrap(),
            "--days",
            "0.05",
            "--seeds",
            "1..3",
        ]);
        assert_eq!(ran.exit, 0, "{name}: {}\n{}", ran.out, ran.err);
    }
    for style in ["page", "feed", "after-id", "link"] {
        assert!(paging.iter().any(|found| found == style), "{paging:?}");
    }
}

#[test]
fn what_is_missing_for_a_simulation_is_said() {
    let place = Place::new();
    let nothing = place.weir(&["simulate"]);
    assert_eq!(nothing.exit, 1, "{nothing:?}");
    assert!(nothing.err.contains("weir new NAME"), "{nothing:?}");

    assert_eq!(place.weir(&["new", "notes"]).exit, 0);
    let vendor = place.dir().join("notes/vendor.toml");
    let text = std::fs::read_to_string(&vendor).unwrap();
    std::fs::remove_file(&vendor).unwrap();
    let missing = place.weir(&["simulate", "notes"]);
    assert_eq!(missing.exit, 1, "{missing:?}");
    assert!(
        missing.err.contains("there is no notes/vendor.toml"),
        "{missing:?}"
    );

    place.write("notes/vendor.toml", &text.replace("order =", "odrer ="));
    let component = built().join("rest.wasm");
    let component = component.to_str().unwrap();
    let misspelt = place.weir(&["simulate", "notes", "--connector", component]);
    assert_eq!(misspelt.exit, 1, "{misspelt:?}");
    assert!(misspelt.err.contains("odrer"), "{misspelt:?}");
}

#[test]
fn a_simulation_in_which_nothing_was_read_is_no_success() {
    let place = Place::new();
    let wms = sources().join("wms");
    let vendor = std::fs::read_to_string(wms.join("vendor.toml")).unwrap();
    let elsewhere = vendor.replace("path = \"/", "path = \"/elsewhere/");
    assert_ne!(elsewhere, vendor);
    place.write("vendor.toml", &elsewhere);
    let component = built().join("wms.wasm");
    let ran = place.weir(&[
        "simulate",
        wms.to_str().unwrap(),
        "--connector",
        component.to_str().unwrap(),
        "--vendor",
        "vendor.toml",
        "--days",
        "0.05",
        "--seeds",
        "1",
    ]);
    assert_eq!(ran.exit, 1, "{}\n{}", ran.out, ran.err);
    for said in ["nothing was shown of these", "wms/", "404", "decoded"] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
}

/// What the guide shows of a vendor can be taken as it stands there.
#[test]
fn the_guides_vendor_is_a_vendor() {
    let guide = include_str!("../../../../docs/writing-connectors.md");
    let blocks = guide.split("```toml\n").skip(1);
    let vendors: Vec<&str> = blocks
        .filter_map(|block| block.split("```").next())
        .filter(|block| block.contains("[[collections]]"))
        .collect();
    assert_eq!(vendors.len(), 1);
    for vendor in vendors {
        let spec = weir_tests::spec::VendorSpec::from_toml(vendor).unwrap();
        spec.check().unwrap();
    }
}
