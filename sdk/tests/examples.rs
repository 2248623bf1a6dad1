//! Every public item of the SDK shows how it is used, in an example that is tested.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Public functions, types and traits; not what is public in the crate alone, nor what is re-exported.
fn is_public(line: &str) -> bool {
    ["fn ", "struct ", "enum ", "trait ", "type ", "const "]
        .iter()
        .any(|kind| line.trim_start().starts_with(&format!("pub {kind}")))
}

#[test]
fn every_public_item_has_an_example() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let mut items = 0;
    let mut without = Vec::new();
    for file in files {
        // Hidden from the documentation: what is generated, and what `export!` installs.
        if file.ends_with("bindings.rs") || file.ends_with("heap.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_public(line)) {
            items += 1;
            let above = lines.iter().take(number).rev();
            let mut docs = above.take_while(|line| {
                let line = line.trim_start();
                line.starts_with("///") || line.starts_with("#[")
            });
            if !docs.any(|line| line.trim_start() == "/// ```") {
                without.push(format!(
                    "{}:{}: {}",
                    file.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
    assert!(items > 150, "only {items} were found");
}
