//! What the README shows works as it is written.

use std::path::Path;

use weir::config;

#[test]
fn the_first_configuration_loads() {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme
        .split_once("```toml\n")
        .expect("the README shows a configuration");
    let (text, _) = rest.split_once("```").expect("it ends");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("weir.toml");
    std::fs::write(&path, text).expect("written");
    let config = config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    assert!(config.connections.contains_key("news"));
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = include_str!("../../../README.md");
    for link in readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
    {
        if !link.starts_with("http") {
            assert!(root.join(link).exists(), "{link}");
        }
    }
}
