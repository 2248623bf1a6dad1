//! Every connector of the repository, as it was built, against its recorded walks.

use std::path::{Path, PathBuf};

use weir::authoring::build::{load, runtime_in};
use weir::authoring::test::run;

/// Where the built connectors are.
pub(crate) fn built() -> PathBuf {
    let dist = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/connectors");
    std::env::var_os("WEIR_CONNECTORS").map_or_else(|| PathBuf::from(dist), PathBuf::from)
}

#[test]
fn every_connector_keeps_to_its_recorded_walks() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../connectors");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("weir/compiled");
    let runtime = runtime_in(Some(cache)).unwrap();
    let mut tested = 0;
    let mut wrong = String::new();
    for entry in std::fs::read_dir(sources).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.join("walks").is_dir() {
            assert!(
                !dir.join("Cargo.toml").is_file(),
                "{} has no walks/",
                dir.display()
            );
            continue;
        }
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let component = built().join(format!("{name}.wasm"));
        let connector = load(&runtime, &component)
            .unwrap_or_else(|error| panic!("{error}: build it with `cargo xtask build`"));
        let report = run(&connector, &dir, false).unwrap();
        tested += 1;
        if !report.is_good() {
            wrong += &report.text();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(tested >= 14, "{tested} connectors were found");
}
