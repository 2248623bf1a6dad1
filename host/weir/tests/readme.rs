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
fn the_table_of_keys_is_one_that_loads() {
    let readme = include_str!("../../../README.md");
    let keys = readme
        .split("```toml\n")
        .find(|block| block.contains("[connection.shop.streams.orders]"))
        .and_then(|block| block.split("```").next())
        .expect("the README lists the keys");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("weir.toml");
    std::fs::write(&path, keys).expect("written");
    let environment = |name: &str| (name == "SHOP_TOKEN").then(|| "t0ken".to_owned());
    let config = config::load_with(&path, &environment).unwrap_or_else(|errors| panic!("{errors}"));
    let defaults = dir.path().join("empty.toml");
    std::fs::write(&defaults, "[host]\n").expect("written");
    let defaults = config::load(&defaults).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.host.concurrency, defaults.host.concurrency);
    assert_eq!(config.host.outbox, defaults.host.outbox);
    assert_eq!(config.host.timeout, defaults.host.timeout);
    assert_eq!(config.host.max_body, defaults.host.max_body);
    assert_eq!(config.host.poll_log, defaults.host.poll_log);
    assert_eq!(config.host.copies, defaults.host.copies);
    assert_eq!(config.alert, defaults.alert);
    assert_eq!(config.connectors["rest"], weir_runtime::Limits::default());
}

#[test]
fn the_webhook_is_one_that_loads_and_shows_the_defaults() {
    let readme = include_str!("../../../README.md");
    let shown = readme
        .split("```toml\n")
        .find(|block| block.contains("type = \"webhook\""))
        .and_then(|block| block.split("```").next())
        .expect("the README shows a webhook");
    let dir = tempfile::tempdir().expect("a directory");
    let load = |text: &str| {
        let path = dir.path().join("weir.toml");
        std::fs::write(&path, text).expect("written");
        let config = config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        config.sinks
    };
    let least = "[sink.hook]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:8080/records\"\n";
    assert_eq!(load(shown), load(least));
}

#[test]
fn the_connection_whose_tokens_expire_is_one_that_loads() {
    let readme = include_str!("../../../README.md");
    let text = readme
        .split("```toml\n")
        .find(|block| block.contains("[connection.crm.auth.oauth2]"))
        .and_then(|block| block.split("```").next())
        .expect("the README shows it");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("weir.toml");
    std::fs::write(&path, text).expect("written");
    let environment = |name: &str| (name == "CRM_SECRET").then(|| "s3cr3t".to_owned());
    let config = config::load_with(&path, &environment).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    assert_eq!(config.connections["crm"].auth.kind(), "oauth2");
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
        if let Some(anchor) = link.strip_prefix('#') {
            let mut headings = readme.lines().filter_map(|line| line.strip_prefix("## "));
            let place = |heading: &str| heading.to_lowercase().replace(' ', "-");
            assert!(headings.any(|heading| place(heading) == anchor), "{link}");
        } else if !link.starts_with("http") {
            assert!(root.join(link).exists(), "{link}");
        }
    }
}
