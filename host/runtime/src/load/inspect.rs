//! A look at a file's outline, without trusting or compiling anything.

use wasmparser::{Chunk, Encoding, Parser, Payload};
use wasmtime::Engine;

use super::{Refusal, check_functions};
use crate::contract::SUPPORTED_VERSIONS;
use crate::limits::MESSAGE;
use crate::text::tame;

/// What kind of file it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A component, with the names of what it imports and exports.
    Component {
        imports: Vec<String>,
        exports: Vec<String>,
    },
    /// A core module with a contract embedded, for the encoder.
    Module,
}

/// Tells the form of a file, or why it is none that weir takes.
pub(crate) fn inspect(bytes: &[u8], allowed: usize) -> Result<Form, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::Empty);
    }
    if bytes.len() > allowed {
        return Err(Refusal::TooLarge {
            bytes: bytes.len(),
            allowed,
        });
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(Refusal::Precompiled);
    }
    const MAGIC: &[u8] = b"\0asm";
    if !bytes.starts_with(MAGIC) {
        return Err(if MAGIC.starts_with(bytes) {
            Refusal::Truncated { bytes: bytes.len() }
        } else {
            Refusal::NotWasm { hint: hint(bytes) }
        });
    }
    outline(bytes)
}

/// What the first bytes look like.
fn hint(bytes: &[u8]) -> &'static str {
    if bytes.trim_ascii_start().starts_with(b"(") {
        " but WebAssembly in text form"
    } else if bytes.trim_ascii_start().starts_with(b"<") {
        " but a web page (was the download refused?)"
    } else if bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"PK") {
        " but an archive; unpack it"
    } else {
        ""
    }
}

#[derive(Default)]
struct Outline {
    component: bool,
    contract: bool,
    imports: Vec<String>,
    exports: Vec<String>,
    core_imports: Vec<String>,
    core_exports: Vec<String>,
}

fn outline(bytes: &[u8]) -> Result<Form, Refusal> {
    let truncated = Refusal::Truncated { bytes: bytes.len() };
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    let mut seen = Outline::default();
    loop {
        let (payload, consumed) = match parser.parse(rest, rest.is_empty()) {
            Ok(Chunk::Parsed { payload, consumed }) => (payload, consumed),
            Ok(Chunk::NeedMoreData(_)) => return Err(truncated),
            // Whole sections, but one that was announced is missing.
            Err(_) if rest.is_empty() => return Err(truncated),
            Err(error) => return Err(malformed(error)),
        };
        rest = rest.get(consumed..).unwrap_or_default();
        // What is nested and what is code is the compiler's to check.
        let skipped = match &payload {
            Payload::ModuleSection {
                unchecked_range, ..
            }
            | Payload::ComponentSection {
                unchecked_range, ..
            } => Some(unchecked_range.len()),
            Payload::CodeSectionStart { size, .. } => {
                parser.skip_section();
                Some(usize::try_from(*size).unwrap_or(usize::MAX))
            }
            _ => None,
        };
        if let Some(len) = skipped {
            let Some(after) = rest.get(len..) else {
                return Err(truncated);
            };
            rest = after;
        }
        if let Payload::End(_) = payload {
            break;
        }
        seen.note(payload).map_err(malformed)?;
    }
    seen.form()
}

impl Outline {
    fn note(&mut self, payload: Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::Version { encoding, .. } => self.component = encoding == Encoding::Component,
            Payload::ComponentImportSection(section) => {
                for import in section {
                    self.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    self.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    self.core_imports.push(import?.module.to_owned());
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    self.core_exports.push(export?.name.to_owned());
                }
            }
            Payload::CustomSection(section) => {
                self.contract |= section.name().starts_with("component-type");
            }
            _ => {}
        }
        Ok(())
    }

    fn form(mut self) -> Result<Form, Refusal> {
        if self.component {
            return Ok(Form::Component {
                imports: self.imports,
                exports: self.exports,
            });
        }
        if self
            .core_imports
            .iter()
            .any(|module| module == "wasi_snapshot_preview1")
        {
            return Err(Refusal::OldWasi);
        }
        if !self.contract {
            return Err(Refusal::NoContract);
        }
        // `env` is where C and C++ look for what the linker has not found.
        self.core_imports.retain(|module| module == "env");
        self.core_imports.dedup();
        if !self.core_imports.is_empty() {
            return Err(Refusal::ForeignImports {
                imports: self.core_imports,
            });
        }
        let prefix = "weir:connector/connector@";
        let ours: Vec<(&str, &str)> = self
            .core_exports
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.split_once('#'))
            .collect();
        let version = ours.first().map(|(version, _)| *version);
        // Another version has other functions, and another way of naming them (cm32p2) is the encoder's to know.
        let known = version.is_none_or(|version| SUPPORTED_VERSIONS.contains(&version));
        if known
            && !self
                .core_exports
                .iter()
                .any(|name| name.starts_with("cm32p2"))
        {
            check_functions(version, ours.iter().map(|(_, function)| *function))?;
        }
        Ok(Form::Module)
    }
}

fn malformed(error: wasmparser::BinaryReaderError) -> Refusal {
    Refusal::Malformed(tame(&error.to_string(), MESSAGE))
}
