//! The SDK and the contract, as they are written beside a connector.

pub(super) use embedded::WIT;

use embedded::SDK;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

const MANIFEST: &str = include_str!("../../../../../sdk/Cargo.toml");
const WORKSPACE: &str = include_str!("../../../../../Cargo.toml");

/// The versions of dependencies that the connectors of the repository are built with.
pub(super) const LOCK: &str = include_str!("../../../../../connectors/Cargo.lock");

/// All files of the SDK, from the folder that holds it and the contract.
pub(super) fn files() -> Vec<(String, String)> {
    let mut files = vec![("sdk/Cargo.toml".to_owned(), manifest())];
    let sources = SDK
        .iter()
        .map(|(path, text)| (format!("sdk/src/{path}"), (*text).to_owned()));
    files.extend(sources);
    files.extend(contract());
    files
}

/// The contract's files, from the folder that holds the SDK and the contract.
pub(super) fn contract() -> impl Iterator<Item = (String, String)> {
    WIT.iter()
        .map(|(path, text)| (format!("wit/{path}"), (*text).to_owned()))
}

/// The SDK's manifest without the workspace that it stands in here.
fn manifest() -> String {
    let (package, _) = MANIFEST
        .split_once("[dev-dependencies]")
        .unwrap_or((MANIFEST, ""));
    let mut out = String::new();
    for line in package.lines() {
        let field = line.strip_suffix(".workspace = true");
        let value = field.and_then(|field| {
            let head = format!("{field} = ");
            WORKSPACE
                .split_once("[workspace.package]")?
                .1
                .lines()
                .find(|line| line.starts_with(&head))
        });
        out.push_str(value.unwrap_or(line));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_stands_by_itself() {
        let parsed: toml::Table = toml::from_str(&manifest()).unwrap();
        assert!(!manifest().contains("workspace"), "{}", manifest());
        assert_eq!(parsed["package"]["edition"].as_str(), Some("2024"));
        assert!(parsed["dependencies"].get("wit-bindgen").is_some());
    }

    #[test]
    fn the_contract_and_the_sources_are_whole() {
        let files = files();
        let has = |path: &str| files.iter().any(|(found, _)| found == path);
        assert!(has("wit/connector.wit") && has("sdk/src/lib.rs") && has("sdk/src/json/scan.rs"));
    }
}
