//! From a core module to a component, and what a component may ask for.

use anyhow::{Context, bail};
use wasmparser::component_types::ComponentEntityType;
use wasmparser::{Encoding, Parser, Payload, Validator};
use wit_component::ComponentEncoder;

/// The one interface whose functions a connector may import; any version of it.
const LOG: &str = "weir:connector/log@";

/// Makes a component of a core module that has its component type embedded. A component stays as it is.
pub(crate) fn encode(wasm: &[u8]) -> anyhow::Result<Vec<u8>> {
    if is_component(wasm)? {
        return Ok(wasm.to_vec());
    }
    ComponentEncoder::default()
        .module(wasm)
        .context("the module has no readable component type: does it use weir_sdk::export!?")?
        .validate(true)
        .encode()
        .context("the module cannot be made a component")
}

/// Fails when a component imports a function other than the log's. Types may be imported: they do nothing.
pub(crate) fn check_imports(wasm: &[u8]) -> anyhow::Result<()> {
    let types = Validator::new()
        .validate_all(wasm)
        .context("not valid WebAssembly")?;
    let types = types.as_ref();
    for name in import_names(wasm)? {
        if name.starts_with(LOG) {
            continue;
        }
        let functions = match types.component_item_for_import(&name).map(|item| item.ty) {
            Some(ComponentEntityType::Instance(instance)) => types[instance]
                .exports
                .iter()
                .filter(|(_, export)| !matches!(export.ty, ComponentEntityType::Type { .. }))
                .map(|(function, _)| function.to_string())
                .collect(),
            Some(ComponentEntityType::Type { .. }) => Vec::new(),
            _ => vec!["itself".to_owned()],
        };
        if !functions.is_empty() {
            bail!(
                "imports {name} ({}); a connector may only import weir:connector/log",
                functions.join(", ")
            );
        }
    }
    Ok(())
}

fn is_component(wasm: &[u8]) -> anyhow::Result<bool> {
    match Parser::new(0).parse_all(wasm).next() {
        Some(Ok(Payload::Version { encoding, .. })) => Ok(encoding == Encoding::Component),
        Some(Err(error)) => Err(error).context("not WebAssembly"),
        _ => bail!("not WebAssembly: an empty file"),
    }
}

/// The names of the outermost component's imports.
fn import_names(wasm: &[u8]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::Version { encoding, .. } => {
                if depth == 0 && encoding != Encoding::Component {
                    bail!("a core module, not a component");
                }
                depth += 1;
            }
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    names.push(import?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}
