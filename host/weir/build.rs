//! Puts the SDK's sources and the contract into the binary: `weir new` writes them beside a connector, which then
//! builds without a registry that has them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut text = String::new();
    for (name, folder) in [("SDK", "sdk/src"), ("WIT", "wit")] {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, &mut files)?;
        files.sort();
        writeln!(
            text,
            "pub(in crate::authoring) const {name}: &[(&str, &str)] = &["
        )?;
        for file in files {
            let inside = file.strip_prefix(&folder)?.to_string_lossy().into_owned();
            let from = fs::canonicalize(&file)?;
            writeln!(text, "    ({inside:?}, include_str!({from:?})),")?;
        }
        writeln!(text, "];")?;
    }
    fs::write(
        PathBuf::from(env::var("OUT_DIR")?).join("embedded.rs"),
        text,
    )?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|ending| ending == "rs" || ending == "wit")
        {
            files.push(path);
        }
    }
    Ok(())
}
