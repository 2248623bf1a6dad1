//! Small connectors made by hand, to break every rule there is.
//!
//! A function of one either answers with a fixed value (its bytes are laid out by the contract itself, so that
//! a change of the contract shows here) or has a body in WebAssembly's text form.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SizeAlign, Type, TypeDefKind};

/// The contract as it stands.
pub(crate) const CONTRACT: &str = include_str!("../../../../wit/connector.wit");

/// Where the answers lie in the guest's memory.
const BASE: usize = 1024;

/// The end of a body that answers with an empty list: memory begins with zeros.
pub(crate) const EMPTY: &str = "(i32.const 16)";

/// The names of the contract's functions with their parameters as core WebAssembly sees them.
const FUNCTIONS: [(&str, &str); 4] = [
    ("describe", "(param i32 i32 i32)"),
    ("partitions", "(param i32 i32 i32 i32)"),
    ("build-request", "(param $args i32)"),
    ("read-response", "(param $args i32)"),
];

enum Body {
    Answer(Value),
    Wat(String),
}

pub(crate) struct Guest {
    wit: String,
    version: String,
    bodies: BTreeMap<String, Body>,
    imports: String,
    module: String,
    allocator: String,
    pages: usize,
}

/// Takes the next bytes, and more memory when they are used up.
const ALLOCATOR: &str = "
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
    (global.set $heap (i32.add (local.get $at) (local.get $len)))
    (block $fits
        (br_if $fits (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
        (drop (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $len) (i32.const 65536))))))
    (local.get $at)";

impl Guest {
    /// A connector that keeps every rule and does next to nothing.
    pub(crate) fn good() -> Self {
        let guest = Guest {
            wit: CONTRACT.to_owned(),
            version: "0.1.0".to_owned(),
            bodies: BTreeMap::new(),
            imports: String::new(),
            module: String::new(),
            allocator: ALLOCATOR.to_owned(),
            pages: 0,
        };
        guest
            .answer("describe", json!({ "ok": descriptor() }))
            .answer("partitions", json!({ "ok": [] }))
            .answer("build-request", json!({ "ok": request() }))
            .answer("read-response", json!({ "ok": page() }))
    }

    /// The function answers with this value.
    pub(crate) fn answer(mut self, function: &str, value: Value) -> Self {
        self.bodies.insert(function.to_owned(), Body::Answer(value));
        self
    }

    /// The function has this body; it must leave the address of its result.
    pub(crate) fn body(mut self, function: &str, wat: &str) -> Self {
        self.bodies
            .insert(function.to_owned(), Body::Wat(wat.to_owned()));
        self
    }

    /// The function is not exported.
    pub(crate) fn without(mut self, function: &str) -> Self {
        self.bodies.remove(function);
        self
    }

    /// Further items of the core module.
    pub(crate) fn module(mut self, wat: &str) -> Self {
        self.module.push_str(wat);
        self
    }

    /// A core import; imports come first.
    pub(crate) fn import(mut self, wat: &str) -> Self {
        self.imports.push_str(wat);
        self
    }

    /// The log's function, as `$log`.
    pub(crate) fn with_log(self) -> Self {
        let import = format!(
            r#"(import "weir:connector/log@{}" "write" (func $log (param i32 i32 i32)))"#,
            self.version
        );
        self.import(&import)
    }

    /// Changes the contract that it is built against.
    pub(crate) fn contract(mut self, change: impl Fn(&str) -> String) -> Self {
        let changed = change(&self.wit);
        assert_ne!(changed, self.wit, "the change found nothing to change");
        self.wit = changed;
        self
    }

    /// Builds it for another version of the contract.
    pub(crate) fn for_version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self.contract(|wit| wit.replace("@0.1.0;", &format!("@{version};")))
    }

    /// The least memory that it starts with, in pages of 64 KiB.
    pub(crate) fn pages(mut self, pages: usize) -> Self {
        self.pages = pages;
        self
    }

    /// Like [`Guest::build`], but with this body for the function that makes room for the host's values.
    pub(crate) fn build_with_allocator(mut self, wat: &str) -> Vec<u8> {
        self.allocator = wat.to_owned();
        self.build()
    }

    /// The core module, with the contract embedded.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut resolve = Resolve::default();
        let package = resolve
            .push_source("connector.wit", &self.wit)
            .expect("the contract parses");
        let world = resolve
            .select_world(&[package], Some("plugin"))
            .expect("the contract has the world");
        let mut module = wat::parse_str(self.text(&resolve)).expect("the module parses");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .expect("the contract can be embedded");
        module
    }

    fn text(&self, resolve: &Resolve) -> String {
        let mut image = Image::new(resolve);
        let mut functions = String::new();
        for (name, params) in FUNCTIONS {
            let body = match self.bodies.get(name) {
                None => continue,
                Some(Body::Wat(wat)) => wat.clone(),
                Some(Body::Answer(value)) => {
                    format!("i32.const {}", image.result_of(name, value))
                }
            };
            let _ = write!(
                functions,
                r#"(func (export "weir:connector/connector@{}#{name}") {params} (result i32) (local $i i32) {body})"#,
                self.version
            );
        }
        let heap = (BASE + image.bytes.len()).next_multiple_of(16);
        let pages = heap.div_ceil(65536).max(self.pages).max(1);
        format!(
            r#"(module
                {imports}
                (memory (export "memory") {pages})
                (global $heap (mut i32) (i32.const {heap}))
                (data (i32.const {BASE}) "{data}")
                (func $alloc (export "cabi_realloc")
                    (param $old i32) (param $old_len i32) (param $align i32) (param $len i32) (result i32)
                    (local $at i32)
                    {allocator})
                {functions}
                {module})"#,
            imports = self.imports,
            data = image.escaped(),
            allocator = self.allocator,
            module = self.module,
        )
    }
}

/// Values laid out as the canonical ABI wants them, at fixed addresses.
struct Image<'a> {
    resolve: &'a Resolve,
    sizes: SizeAlign,
    bytes: Vec<u8>,
}

impl<'a> Image<'a> {
    fn new(resolve: &'a Resolve) -> Self {
        let mut sizes = SizeAlign::default();
        sizes.fill(resolve);
        Image {
            resolve,
            sizes,
            bytes: Vec::new(),
        }
    }

    fn escaped(&self) -> String {
        self.bytes.iter().map(|b| format!("\\{b:02x}")).collect()
    }

    /// The address of the result of a function of the connector.
    fn result_of(&mut self, function: &str, value: &Value) -> usize {
        let interface = self
            .resolve
            .interfaces
            .iter()
            .find(|(_, interface)| interface.name.as_deref() == Some("connector"))
            .expect("the contract has the interface")
            .1;
        let ty = interface.functions[function].result.expect("it returns");
        let at = self.room(self.size(&ty), self.align(&ty));
        self.put(at, &ty, value);
        BASE + at
    }

    fn size(&self, ty: &Type) -> usize {
        self.sizes.size(ty).size_wasm32()
    }

    fn align(&self, ty: &Type) -> usize {
        self.sizes.align(ty).align_wasm32()
    }

    fn room(&mut self, size: usize, align: usize) -> usize {
        let at = self.bytes.len().next_multiple_of(align);
        self.bytes.resize(at + size, 0);
        at
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn pair(&mut self, at: usize, address: usize, len: usize) {
        self.set(at, &u32::try_from(address).unwrap().to_le_bytes());
        self.set(at + 4, &u32::try_from(len).unwrap().to_le_bytes());
    }

    fn put(&mut self, at: usize, ty: &Type, value: &Value) {
        match ty {
            Type::Bool => self.set(at, &[u8::from(value.as_bool().unwrap())]),
            Type::U8 => self.set(at, &[u8::try_from(value.as_u64().unwrap()).unwrap()]),
            Type::U16 => self.set(
                at,
                &u16::try_from(value.as_u64().unwrap())
                    .unwrap()
                    .to_le_bytes(),
            ),
            Type::U32 => self.set(
                at,
                &u32::try_from(value.as_u64().unwrap())
                    .unwrap()
                    .to_le_bytes(),
            ),
            Type::U64 => self.set(at, &value.as_u64().unwrap().to_le_bytes()),
            Type::S64 => self.set(at, &value.as_i64().unwrap().to_le_bytes()),
            Type::F64 => self.set(at, &value.as_f64().unwrap().to_le_bytes()),
            Type::String => {
                let text = value.as_str().unwrap();
                let start = self.room(text.len(), 1);
                self.set(start, text.as_bytes());
                self.pair(at, BASE + start, text.len());
            }
            Type::Id(id) => self.put_defined(at, &self.resolve.types[*id].kind, value),
            other => panic!("the contract does not use {other:?}"),
        }
    }

    fn put_defined(&mut self, at: usize, kind: &'a TypeDefKind, value: &Value) {
        match kind {
            TypeDefKind::Type(ty) => self.put(at, ty, value),
            TypeDefKind::Record(record) => {
                let names = record.fields.iter().map(|field| field.name.as_str());
                let types: Vec<_> = record.fields.iter().map(|field| field.ty).collect();
                for (name, (offset, ty)) in names.zip(self.sizes.field_offsets(&types)) {
                    let field = value.get(name).unwrap_or(&Value::Null);
                    self.put(at + offset.size_wasm32(), ty, field);
                }
            }
            TypeDefKind::Tuple(tuple) => {
                for (n, (offset, ty)) in self
                    .sizes
                    .field_offsets(&tuple.types)
                    .into_iter()
                    .enumerate()
                {
                    self.put(at + offset.size_wasm32(), ty, &value[n]);
                }
            }
            TypeDefKind::List(ty) => {
                // A field that is left out is an empty list.
                let items = value.as_array().cloned().unwrap_or_default();
                let (size, align) = (self.size(ty), self.align(ty));
                let start = self.room(size * items.len(), align);
                for (n, item) in items.iter().enumerate() {
                    self.put(start + n * size, ty, item);
                }
                self.pair(at, BASE + start, items.len());
            }
            TypeDefKind::Option(ty) => {
                let case = usize::from(!value.is_null());
                self.put_case(at, case, &[None, Some(*ty)], value);
            }
            TypeDefKind::Result(result) => {
                let (case, payload) = match (value.get("ok"), value.get("err")) {
                    (Some(payload), _) => (0, payload),
                    (_, Some(payload)) => (1, payload),
                    _ => panic!("a result is ok or err: {value}"),
                };
                self.put_case(at, case, &[result.ok, result.err], payload);
            }
            TypeDefKind::Enum(cases) => {
                let name = value.as_str().unwrap();
                let case = cases.cases.iter().position(|case| case.name == name);
                self.set(at, &[u8::try_from(case.expect(name)).unwrap()]);
            }
            TypeDefKind::Variant(variant) => {
                let (name, payload) = match value {
                    Value::String(name) => (name, &Value::Null),
                    _ => value.as_object().unwrap().iter().next().unwrap(),
                };
                let case = variant.cases.iter().position(|case| case.name == *name);
                let types: Vec<_> = variant.cases.iter().map(|case| case.ty).collect();
                self.put_case(at, case.expect(name), &types, payload);
            }
            other => panic!("the contract does not use {other:?}"),
        }
    }

    fn put_case(&mut self, at: usize, case: usize, types: &[Option<Type>], payload: &Value) {
        self.set(at, &[u8::try_from(case).unwrap()]);
        if let Some(ty) = &types[case] {
            let offset = self
                .sizes
                .payload_offset(wit_parser::Int::U8, types.iter().map(Option::as_ref));
            self.put(at + offset.size_wasm32(), ty, payload);
        }
    }
}

pub(crate) fn descriptor() -> Value {
    json!({
        "name": "acme",
        "title": "Acme",
        "version": "1.0.0",
        "config-schema": "{}",
        "origins": [{ "id": "api", "url": "https://api.example.test", "auth": ["none", "bearer"] }],
        "streams": [stream("orders")],
        "pacing": { "unpublished-limits": false, "not-modified-is-free": true, "concurrency": 2 },
    })
}

pub(crate) fn stream(name: &str) -> Value {
    json!({
        "name": name,
        "title": "Orders",
        "key": ["/id"],
        "schema": r#"{"required":["id"]}"#,
        "cursor": "timestamp",
        "order": "ascending",
        "page-size": 100,
        "granularity": 1000,
        "backfill": true,
    })
}

pub(crate) fn request() -> Value {
    json!({
        "method": "get",
        "origin": "api",
        "target": { "path": "/orders" },
        "query": [["limit", "100"]],
        "headers": [{ "name": "accept", "value": "application/json" }],
        "conditional": true,
        "cost": 1,
    })
}

pub(crate) fn page() -> Value {
    json!({ "records": [], "next": [], "truncated": false })
}

pub(crate) fn record(id: &str, data: Value) -> Value {
    json!({ "id": id, "updated-at": 1_700_000_000_000_i64, "deleted": false, "data": data })
}

pub(crate) fn fault(message: &str) -> Value {
    json!({ "class": "temporary", "scope": "connection", "code": "503", "message": message, "wait": 1500 })
}
