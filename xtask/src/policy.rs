//! Which crates may be part of this: those under licences that `deny.toml` allows, from one registry, each with its
//! checksum in the lock file. Without a network: `cargo deny` looks for advisories besides, where there is one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::cargo;

/// The workspaces, each with a lock file of its own.
const WORKSPACES: [&str; 3] = [".", "connectors", "fuzz"];

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    source: Option<String>,
    checksum: Option<String>,
}

pub(crate) fn check() -> anyhow::Result<()> {
    let root = cargo::root();
    let deny = fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let deny: Deny = toml::from_str(&deny).context("deny.toml")?;
    let mut wrong = Vec::new();
    let mut sources = BTreeSet::new();
    let mut crates = 0;
    for workspace in WORKSPACES {
        let dir = root.join(workspace);
        let lock = fs::read_to_string(dir.join("Cargo.lock")).context("Cargo.lock")?;
        let lock: Lock = toml::from_str(&lock).context("Cargo.lock")?;
        for locked in &lock.package {
            sources.extend(locked.source.clone());
            if locked.source.is_some() && locked.checksum.is_none() {
                wrong.push(format!("{workspace}: {} has no checksum", locked.name));
            }
        }
        let Some(metadata) = metadata(&dir)? else {
            println!("  SKIPPED: licences of {workspace}: its crates are not all on this machine");
            continue;
        };
        for package in metadata.packages {
            crates += 1;
            wrong.extend(objection(&package, &deny.licenses.allow));
        }
    }
    if sources.len() > 1 || !sources.iter().all(|source| source.starts_with("registry+")) {
        wrong.push(format!(
            "crates come from elsewhere than one registry: {sources:?}"
        ));
    }
    if !wrong.is_empty() {
        bail!("not allowed (deny.toml):\n  {}", wrong.join("\n  "));
    }
    println!("  {crates} crates, all with a checksum, under licences that deny.toml allows");
    Ok(())
}

fn objection(package: &Package, allowed: &BTreeSet<String>) -> Option<String> {
    let Package { name, version, .. } = package;
    match package.license.as_deref() {
        // Our own are named in the workspace.
        None if package.source.is_none() => None,
        None => Some(format!("{name} {version} names no licence")),
        Some(license) if may_be_used(license, allowed) => None,
        Some(license) => Some(format!("{name} {version} is under {license}")),
    }
}

/// What is built here, for this platform. None: it never was, so there is nothing to read.
fn metadata(dir: &Path) -> anyhow::Result<Option<Metadata>> {
    let mut command = Command::new("cargo");
    command
        .current_dir(dir)
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(["--filter-platform", &platform()?]);
    let output = command.output().context("cargo metadata")?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        if told.contains("--offline") && !told.contains("--locked") {
            return Ok(None);
        }
        bail!("{command:?} in {}: {told}", dir.display());
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(Some(metadata))
}

fn platform() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let told = String::from_utf8_lossy(&output.stdout);
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

/// Does an SPDX expression leave a way to use the crate? A slash is an old way to write OR.
fn may_be_used(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let usable = any(&mut words, allowed);
    usable && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut usable = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        usable |= all(words, allowed);
    }
    usable
}

fn all(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut usable = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        usable &= one(words, allowed);
    }
    usable
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let usable = any(words, allowed);
        return words.next() == Some(")") && usable;
    }
    match words.next_if_eq(&"WITH").and_then(|_| words.next()) {
        Some(exception) => allowed.contains(&format!("{word} WITH {exception}")),
        None => allowed.contains(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_read_as_it_is_meant() {
        let allowed: BTreeSet<String> =
            ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"]
                .map(str::to_owned)
                .into();
        for good in [
            "MIT",
            "MIT/GPL-3.0",
            "GPL-3.0 OR MIT",
            "Apache-2.0 AND ISC",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR GPL-3.0) AND ISC",
            "LGPL-2.1-or-later OR (MIT AND ISC)",
        ] {
            assert!(may_be_used(good, &allowed), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND GPL-3.0",
            "MIT WITH Classpath-exception-2.0",
            "(MIT",
            "MIT ISC",
        ] {
            assert!(!may_be_used(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn a_crate_without_a_licence_is_told() {
        let package = |license: Option<&str>, source: Option<&str>| Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
        };
        let allowed = BTreeSet::from(["MIT".to_owned()]);
        assert!(objection(&package(Some("MIT"), Some("registry+x")), &allowed).is_none());
        assert!(objection(&package(Some("GPL-3.0"), None), &allowed).is_some());
        assert!(objection(&package(None, Some("registry+x")), &allowed).is_some());
        assert!(objection(&package(None, None), &allowed).is_none());
    }
}
