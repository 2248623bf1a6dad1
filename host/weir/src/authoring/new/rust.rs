//! A connector in Rust.

use super::{Files, Names, sdk};

/// What a connector is made of: where, and the text with its names to be filled in.
const FILES: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("rust/Cargo.toml.txt")),
    (
        ".cargo/config.toml",
        include_str!("../../../../../connectors/.cargo/config.toml"),
    ),
    (".gitignore", include_str!("rust/gitignore.txt")),
    ("README.md", include_str!("rust/README.md.txt")),
    ("src/lib.rs", include_str!("rust/lib.rs.txt")),
    (
        "src/config.schema.json",
        include_str!("rust/config.schema.json"),
    ),
    (
        "walks/two_pages.json",
        include_str!("rust/two_pages.json.txt"),
    ),
    ("walks/limited.json", include_str!("rust/limited.json.txt")),
    ("weir.toml", super::CONFIG),
    ("vendor.toml", super::VENDOR),
];

/// All files, and those that its author reads first.
pub(super) fn files(names: &Names<'_>) -> Files {
    let mut files: Vec<_> = FILES
        .iter()
        .map(|(path, text)| ((*path).to_owned(), names.fill(text)))
        .collect();
    // cargo drops what of it this connector does not need.
    files.push(("Cargo.lock".to_owned(), sdk::LOCK.to_owned()));
    files.extend(
        sdk::files()
            .into_iter()
            .map(|(path, text)| (format!(".weir/{path}"), text)),
    );
    let shown = vec![
        (
            "src/lib.rs".to_owned(),
            "the connector: an example that works",
        ),
        (
            "src/config.schema.json".to_owned(),
            "what a connection's config may hold",
        ),
        (
            "walks/".to_owned(),
            "recorded answers, and what the connector makes of them",
        ),
        ("vendor.toml".to_owned(), super::SIMULATED),
        ("README.md".to_owned(), "how to go on"),
        (
            ".weir/".to_owned(),
            "the SDK and the contract of this version; not to be edited",
        ),
    ];
    (files, shown)
}
