//! Files that are no usable connectors: each is refused with its own reason.

use serde_json::{Value, json};
use weir_runtime::{CallErrorKind, Limits, Refusal};

use crate::guest::{self, Guest};
use crate::{load_in, refusal, runtime, runtime_with};

#[test]
fn an_empty_file() {
    assert_eq!(refusal(b""), Refusal::Empty);
}

#[test]
fn a_file_that_is_not_wasm() {
    assert!(matches!(
        refusal(b"hello, world"),
        Refusal::NotWasm { hint: "" }
    ));
    let Refusal::NotWasm { hint } = refusal(b"\n  (component)") else {
        panic!("text is not wasm");
    };
    assert!(hint.contains("text form"));
    let Refusal::NotWasm { hint } = refusal(b"<!doctype html><title>404</title>") else {
        panic!("a page is not wasm");
    };
    assert!(hint.contains("web page"));
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_it_ends() {
    let module = Guest::good().build();
    // The last section is the embedded contract; without it the module is whole but no connector.
    for len in 1..module.len() {
        match refusal(&module[..len]) {
            Refusal::Truncated { bytes } => assert_eq!(bytes, len),
            Refusal::NoContract => {}
            other => panic!("cut at {len}: {other}"),
        }
    }
}

#[test]
fn a_damaged_file() {
    let mut module = Guest::good().build();
    module[9] = 0xff;
    assert!(matches!(
        refusal(&module),
        Refusal::Malformed(_) | Refusal::Truncated { .. }
    ));
    // Another version of the format.
    let mut module = Guest::good().build();
    module[4] = 7;
    assert!(matches!(refusal(&module), Refusal::Malformed(_)));
}

#[test]
fn code_that_does_not_validate() {
    let bad = Guest::good().body("partitions", "(i64.const 1)").build();
    let (Refusal::NotEncodable(why) | Refusal::NotCompilable(why)) = refusal(&bad) else {
        panic!("the module is invalid");
    };
    assert!(why.contains("type mismatch"), "{why}");
}

#[test]
fn compiled_code_is_never_taken_from_a_file() {
    let engine = wasmtime::Engine::default();
    let code = engine.precompile_module(b"\0asm\x01\0\0\0").unwrap();
    assert_eq!(refusal(&code), Refusal::Precompiled);
}

#[test]
fn a_file_that_is_too_large() {
    // Larger than the smallest limit that there may be.
    let text = "x".repeat(100 << 10);
    let module = Guest::good().module(&format!("(data \"{text}\")")).build();
    let runtime = runtime_with(Limits {
        file: module.len() - 1,
        ..Limits::default()
    });
    let error = runtime.load("big.wasm".as_ref(), &module).unwrap_err();
    assert_eq!(
        error.refusal,
        Refusal::TooLarge {
            bytes: module.len(),
            allowed: module.len() - 1
        }
    );
}

#[test]
fn modules_without_a_contract() {
    let plain = wat::parse_str("(module (func (export \"run\")))").unwrap();
    assert_eq!(refusal(&plain), Refusal::NoContract);
    let old = wat::parse_str(
        r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))))"#,
    )
    .unwrap();
    assert_eq!(refusal(&old), Refusal::OldWasi);
}

#[test]
fn components_of_another_world() {
    let other = wat::parse_str(
        r#"(component
            (import "acme:plugin/host@1.0.0" (instance (export "now" (func (result u64)))))
            (core module $m (func (export "run")))
            (core instance $i (instantiate $m))
            (func $run (canon lift (core func $i "run")))
            (export "run" (func $run)))"#,
    )
    .unwrap();
    let refused = refusal(&other);
    assert_eq!(
        refused,
        Refusal::OtherWorld {
            exports: vec!["run".into()]
        }
    );
    let text = refused.to_string();
    assert!(
        text.contains("weir:connector/connector@0.1.0") && text.contains("exports run"),
        "{text}"
    );
}

#[test]
fn imports_that_no_connector_gets() {
    let curious = Guest::good()
        .contract(|wit| {
            wit.replace("  import log;", "  import log;\n  import acme:vault/secrets@1.2.0;")
                + "\npackage acme:vault@1.2.0 { interface secrets { read: func(name: string) -> string; } }"
        })
        .import(r#"(import "acme:vault/secrets@1.2.0" "read" (func (param i32 i32 i32)))"#)
        .build();
    assert_eq!(
        refusal(&curious),
        Refusal::ForeignImports {
            imports: vec!["acme:vault/secrets@1.2.0".into()]
        }
    );
    let unlinked = Guest::good()
        .import(r#"(import "env" "malloc" (func (param i32) (result i32)))"#)
        .build();
    assert_eq!(
        refusal(&unlinked),
        Refusal::ForeignImports {
            imports: vec!["env".into()]
        }
    );
}

#[test]
fn versions_that_this_host_does_not_run() {
    for (asked, remedy) in [("0.9.0", "newer weir"), ("0.0.3", "`weir new`")] {
        let refused = refusal(&Guest::good().for_version(asked).build());
        assert_eq!(
            refused,
            Refusal::UnsupportedVersion {
                asked: asked.into()
            }
        );
        let text = refused.to_string();
        assert!(
            text.contains(asked) && text.contains("0.1.0") && text.contains(remedy),
            "{text}"
        );
    }
}

#[test]
fn a_contract_with_other_types_behind_the_same_names() {
    let changed = Guest::good()
        .contract(|wit| {
            wit.replace(
                "partitions: func(%stream: string",
                "partitions: func(%stream: u64",
            )
        })
        .answer("partitions", json!({ "ok": [] }))
        .build();
    // The core signature follows the contract, so the encoder may be the first to notice.
    assert!(matches!(
        refusal(&changed),
        Refusal::WrongTypes { .. } | Refusal::NotEncodable(_)
    ));
    let changed = Guest::good()
        .contract(|wit| wit.replace("total: option<u64>", "total: option<s64>"))
        .build();
    let Refusal::WrongTypes { version, detail } = refusal(&changed) else {
        panic!("the types differ");
    };
    assert_eq!(version, "0.1.0");
    assert!(detail.contains("u64"), "{detail}");
}

#[test]
fn an_export_is_missing() {
    let module = Guest::good().without("build-request").build();
    let component = wat::parse_str(
        r#"(component (instance $i) (export "weir:connector/connector@0.1.0" (instance $i)))"#,
    )
    .unwrap();
    for (file, names) in [(module, 1), (component, 4)] {
        let refused = refusal(&file);
        let Refusal::MissingExports { version, missing } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(version.as_deref(), Some("0.1.0"));
        assert_eq!(missing.len(), names, "{missing:?}");
        let text = refused.to_string();
        for part in [
            "build-request",
            "weir:connector/connector@0.1.0",
            "weir build",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn describe_must_answer() {
    let Refusal::Describe(kind) = refusal(&Guest::good().body("describe", "unreachable").build())
    else {
        panic!("describe traps");
    };
    assert!(matches!(kind, CallErrorKind::Trap { .. }));
    let Refusal::Describe(kind) = refusal(
        &Guest::good()
            .body("describe", "(loop (br 0)) (i32.const 0)")
            .build(),
    ) else {
        panic!("describe loops");
    };
    assert!(matches!(
        kind,
        CallErrorKind::OutOfTime {
            allowed_ms: 200,
            ..
        }
    ));
    let fault = Guest::good().answer("describe", json!({ "err": guest::fault("no\x1b[31m") }));
    assert_eq!(
        refusal(&fault.build()),
        Refusal::DescribeFault("503 no\\u{1b}[31m".into())
    );
}

#[test]
fn what_a_connector_says_of_itself_must_make_sense() {
    let invalid = |path: &str, value: Value| {
        let mut descriptor = guest::descriptor();
        *descriptor.pointer_mut(path).expect("the path exists") = value;
        let guest = Guest::good().answer("describe", json!({ "ok": descriptor }));
        match refusal(&guest.build()) {
            Refusal::InvalidDescriptor(why) => why,
            other => panic!("{other}"),
        }
    };
    assert!(invalid("/name", json!("")).contains("name is empty"));
    assert!(invalid("/name", json!("Acme Inc")).contains("a-z"));
    assert!(invalid("/version", json!("")).contains("version"));
    assert!(invalid("/title", json!("a\nb")).contains("control characters"));
    assert!(invalid("/config-schema", json!("{")).contains("not JSON"));
    assert!(invalid("/config-schema", json!("[]")).contains("not a JSON object"));
    assert!(invalid("/origins", json!([])).contains("no origin"));
    let origin = guest::descriptor()["origins"][0].clone();
    assert!(invalid("/origins", json!([origin, origin])).contains("twice"));
    assert!(invalid("/origins/0/url", json!("")).contains("no url"));
    let twice = json!([guest::stream("orders"), guest::stream("orders")]);
    assert!(invalid("/streams", twice).contains("twice"));
    assert!(invalid("/streams/0/name", json!("")).contains("name is empty"));
    assert!(invalid("/streams/0/page-size", json!(0)).contains("page-size"));
    assert!(invalid("/streams/0/granularity", json!(0)).contains("granularity"));
    assert!(invalid("/streams/0/key", json!(["id"])).contains("JSON pointer"));
    let mut orphan = guest::stream("items");
    orphan["parent"] = json!("nowhere");
    assert!(invalid("/streams", json!([guest::stream("orders"), orphan])).contains("parent"));
}

#[test]
fn a_good_connector_loads_as_module_and_as_component() {
    let runtime = runtime();
    let module = Guest::good().build();
    let component = wit_component::ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap();
    let by_component = runtime.load("acme.wasm".as_ref(), &component).unwrap();
    let by_module = load_in(&runtime, &Guest::good());
    assert_eq!(by_component.descriptor(), by_module.descriptor());
    assert_ne!(by_component.digest(), by_module.digest());
}
