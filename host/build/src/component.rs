//! From a core module to a component, and what a component may ask for.

use wasmparser::component_types::ComponentEntityType;
use wasmparser::{Encoding, Parser, Payload, Validator};
use wit_component::ComponentEncoder;

use crate::BuildError;

/// The one interface whose functions a connector may import; any version of it.
const LOG: &str = "weir:connector/log@";

/// What a connector exports, in any version of it.
const CONTRACT: &str = "weir:connector/connector@";

/// Makes a component of a core module that has its component type embedded. A component stays as it is.
///
/// # Errors
/// [`BuildError`]: not WebAssembly, or a module without the contract in it.
pub fn encode(wasm: &[u8]) -> Result<Vec<u8>, BuildError> {
    if is_component(wasm)? {
        return Ok(wasm.to_vec());
    }
    ComponentEncoder::default()
        .module(wasm)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|error| BuildError::NotEncodable(format!("{error:#}")))
}

/// Fails when a component is no connector.
///
/// # Errors
/// [`BuildError::NoConnector`], [`BuildError::NotWasm`].
pub fn check_exports(wasm: &[u8]) -> Result<(), BuildError> {
    if !outline(wasm)?
        .exports
        .iter()
        .any(|name| name.starts_with(CONTRACT))
    {
        return Err(BuildError::NoConnector);
    }
    Ok(())
}

/// Fails when a component imports a function other than the log's. Types may be imported: they do nothing.
///
/// # Errors
/// [`BuildError::Import`], [`BuildError::NotWasm`].
pub fn check_imports(wasm: &[u8]) -> Result<(), BuildError> {
    let types = Validator::new().validate_all(wasm).map_err(not_wasm)?;
    let types = types.as_ref();
    for name in outline(wasm)?.imports {
        if name.starts_with(LOG) {
            continue;
        }
        let functions = match types.component_item_for_import(&name).map(|item| item.ty) {
            Some(ComponentEntityType::Type { .. }) => Vec::new(),
            Some(ComponentEntityType::Instance(id)) => types
                .get(id)
                .into_iter()
                .flat_map(|instance| &instance.exports)
                .filter(|(_, export)| !matches!(export.ty, ComponentEntityType::Type { .. }))
                .map(|(function, _)| function.clone())
                .collect(),
            _ => vec!["itself".to_owned()],
        };
        if !functions.is_empty() {
            return Err(BuildError::Import {
                interface: name,
                functions: functions.join(", "),
            });
        }
    }
    Ok(())
}

fn not_wasm(why: impl ToString) -> BuildError {
    BuildError::NotWasm(why.to_string())
}

fn is_component(wasm: &[u8]) -> Result<bool, BuildError> {
    match Parser::new(0).parse_all(wasm).next() {
        Some(Ok(Payload::Version { encoding, .. })) => Ok(encoding == Encoding::Component),
        Some(Err(error)) => Err(not_wasm(error)),
        _ => Err(not_wasm("an empty file")),
    }
}

/// What the outermost component imports and exports, by name.
#[derive(Default)]
struct Outline {
    imports: Vec<String>,
    exports: Vec<String>,
}

fn outline(wasm: &[u8]) -> Result<Outline, BuildError> {
    let mut outline = Outline::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(not_wasm)? {
            Payload::Version { encoding, .. } => {
                if depth == 0 && encoding != Encoding::Component {
                    return Err(not_wasm("a core module, not a component"));
                }
                depth += 1;
            }
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import.map_err(not_wasm)?;
                    outline.imports.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let export = export.map_err(not_wasm)?;
                    outline.exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(outline)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(component: &str) -> Result<(), BuildError> {
        check_imports(&wat::parse_str(component).unwrap())
    }

    #[test]
    fn types_and_the_log_may_be_imported() {
        check(
            r#"(component
                (import "weir:connector/types@0.1.0" (instance
                    (export "level" (type (sub resource)))
                ))
                (import "weir:connector/log@0.1.0" (instance
                    (export "write" (func (param "message" string)))
                ))
            )"#,
        )
        .unwrap();
    }

    #[test]
    fn any_other_function_is_refused_by_name() {
        for (component, named) in [
            (
                r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func)))))"#,
                "(now)",
            ),
            (
                r#"(component (import "weir:connector/logs@0.1.0" (instance (export "write" (func)))))"#,
                "(write)",
            ),
            (r#"(component (import "now" (func)))"#, "now (itself)"),
            (
                r#"(component (import "m" (core module (import "env" "now" (func)))))"#,
                "m (itself)",
            ),
        ] {
            let refused = check(component).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }

    #[test]
    fn what_is_no_component_is_refused() {
        assert!(check("(module)").is_err());
        assert!(check_imports(b"").is_err());
        assert!(encode(b"\x7fELF").is_err());
        let empty = encode(&wat::parse_str("(module)").unwrap()).unwrap();
        let refused = check_exports(&empty).unwrap_err().to_string();
        assert!(refused.contains("weir_sdk::export!"), "{refused}");
    }

    #[test]
    fn a_component_stays_as_it_is() {
        let component = wat::parse_str("(component)").unwrap();
        assert_eq!(encode(&component).unwrap(), component);
    }
}
