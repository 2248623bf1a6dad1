//! `docs/wit.md` is made of `wit/connector.wit`, and says what that says.

use std::fmt::Write as _;
use std::path::Path;

const CONTRACT: &str = include_str!("../../../../wit/connector.wit");

const INTRODUCTION: &str = "# The contract\n\n\
    What host and connector say to each other: every type, every field, every function. It is made of\n\
    [wit/connector.wit](../wit/connector.wit); [writing-connectors.md](writing-connectors.md) explains how it is used. In Rust the\n\
    names are those of the SDK (`Descriptor`, `page_size`), in JavaScript `pageSize`, in Python `page_size`.\n\n\
    Moments are milliseconds since the Unix epoch, UTC; durations are milliseconds. Values that are `option` may be left out.\n";

/// One thing of the contract that has a name.
struct Item {
    kind: String,
    name: String,
    docs: String,
    members: Vec<(String, String, String)>,
}

/// Reads the contract line by line: it is laid out so that this is enough, and the test fails where it is not.
fn reference(contract: &str) -> String {
    let mut out = INTRODUCTION.to_owned();
    let mut docs = Vec::new();
    let mut open: Option<Item> = None;
    for line in contract.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix("// ----------") {
            let _ = write!(out, "\n## {}\n", capital(title.trim_matches(['-', ' '])));
        } else if let Some(text) = line.strip_prefix("///") {
            docs.push(text.trim().to_owned());
        } else if line.is_empty() || line.starts_with("//") {
            // What stands there is for whoever reads the file itself.
        } else if line == "}" || line == "};" {
            if let Some(item) = open.take() {
                show(&mut out, &item);
            }
        } else if let Some(item) = &mut open {
            item.members.push(member(line, &mut docs));
        } else if let Some(name) = line.strip_prefix("package ") {
            let _ = write!(out, "\nVersion: `{}`\n", name.trim_end_matches(';'));
        } else if let Some(name) = starts(line, "interface ") {
            let _ = write!(out, "\n## Interface `{name}`\n");
            paragraph(&mut out, &mut docs);
        } else if let Some(name) = starts(line, "world ") {
            let _ = write!(
                out,
                "\n## World `{name}`\n\nA component imports `log` and exports `connector`; nothing else.\n"
            );
        } else if let Some(rest) = line.strip_prefix("type ") {
            let (name, meaning) = rest.trim_end_matches(';').split_once('=').unwrap();
            let text = std::mem::take(&mut docs).join(" ");
            let _ = write!(
                out,
                "\n**`{}`** (`{}`): {text}\n",
                name.trim(),
                meaning.trim()
            );
        } else if let Some((name, function)) = line.split_once(": func") {
            let _ = write!(
                out,
                "\n### `{name}`\n\n`{name}: func{}`\n",
                function.trim_end_matches(';').replace('%', "")
            );
            paragraph(&mut out, &mut docs);
        } else if let Some(kind) = ["record", "variant", "enum"]
            .iter()
            .find(|kind| line.starts_with(**kind))
        {
            let (head, body) = line.split_once('{').unwrap();
            let item = Item {
                kind: (*kind).to_owned(),
                name: head[kind.len()..].trim().replace('%', ""),
                docs: std::mem::take(&mut docs).join(" "),
                members: Vec::new(),
            };
            match body.trim().strip_suffix('}') {
                Some(inner) => {
                    let members = inner
                        .split(',')
                        .map(|part| member(part.trim(), &mut Vec::new()));
                    let members = members.collect();
                    show(&mut out, &Item { members, ..item });
                }
                None => open = Some(item),
            }
        }
    }
    out
}

fn starts<'l>(line: &'l str, kind: &str) -> Option<&'l str> {
    Some(line.strip_prefix(kind)?.trim_end_matches('{').trim())
}

/// `name: type,  // remark`, or a case.
fn member(line: &str, docs: &mut Vec<String>) -> (String, String, String) {
    let (code, remark) = line.split_once("//").unwrap_or((line, ""));
    let code = code.trim().trim_end_matches(',');
    let (name, kind) = match (code.split_once(": "), code.split_once('(')) {
        (Some((name, kind)), _) => (name, kind),
        (None, Some((name, kind))) => (name, kind.trim_end_matches(')')),
        (None, None) => (code, ""),
    };
    let mut meaning = std::mem::take(docs);
    meaning.push(remark.trim().to_owned());
    (
        name.replace('%', ""),
        kind.replace('%', ""),
        meaning.join(" ").trim().to_owned(),
    )
}

fn show(out: &mut String, item: &Item) {
    let _ = write!(out, "\n### {} `{}`\n", capital(&item.kind), item.name);
    if !item.docs.is_empty() {
        let _ = write!(out, "\n{}\n", item.docs);
    }
    let explained = item
        .members
        .iter()
        .any(|(_, kind, meaning)| !kind.is_empty() || !meaning.is_empty());
    if !explained {
        let names: Vec<String> = item
            .members
            .iter()
            .map(|(name, ..)| format!("`{name}`"))
            .collect();
        let _ = write!(out, "\n{}\n", names.join(", "));
        return;
    }
    out.push_str("\n| | | |\n| --- | --- | --- |\n");
    for (name, kind, meaning) in &item.members {
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!("`{kind}`")
        };
        let _ = writeln!(
            out,
            "| `{name}` | {kind} | {} |",
            meaning.replace('|', "\\|").replace('<', "\\<")
        );
    }
}

fn paragraph(out: &mut String, docs: &mut Vec<String>) {
    let text = std::mem::take(docs).join("\n");
    if !text.is_empty() {
        let _ = write!(out, "\n{text}\n");
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().to_string() + chars.as_str()
    })
}

#[test]
fn the_reference_says_what_the_contract_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wit.md");
    let made = reference(CONTRACT);
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        kept, made,
        "write it anew: WEIR_UPDATE=1 cargo test -p weir --test authoring reference"
    );
    // Nothing of it is lost on the way.
    for name in [
        "build-request",
        "volatile",
        "auth-revoked",
        "poll-after",
        "oauth2",
        "head",
        "span",
        "sync-now",
        "restores",
    ] {
        assert!(made.contains(&format!("`{name}`")), "{name}");
    }
    for line in CONTRACT
        .lines()
        .filter_map(|line| line.trim().strip_prefix("/// "))
    {
        assert!(made.contains(line.trim()), "{line}");
    }
}
