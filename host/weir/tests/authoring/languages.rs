//! Connectors in other languages: where their toolchains are there, from sources to a passed test.

use std::path::PathBuf;

use weir_build::tool::{NODE, VENV, find};

use crate::cli_support::{Place, Ran};

fn example(name: &str) -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../connectors/examples"
    ))
    .join(name)
}

/// Copies an example, so that nothing is written into the sources; links become what they lead to.
fn copied(name: &str, place: &Place) {
    let from = example(name);
    for entry in [
        "",
        ".weir",
        ".weir/js",
        ".weir/python",
        ".weir/wit",
        "src",
        "walks",
    ] {
        let Ok(files) = std::fs::read_dir(from.join(entry)) else {
            continue;
        };
        let to = place.dir().join("examples").join(name).join(entry);
        std::fs::create_dir_all(&to).unwrap();
        for file in files {
            let file = file.unwrap().path();
            if file.is_file() {
                std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
            }
        }
    }
    // Their answers are those of the connectors in Rust.
    for connector in ["hackernews", "mediawiki"] {
        let fixtures = from.join("../..").join(connector).join("fixtures");
        let to = place.dir().join(connector).join("fixtures");
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(fixtures).unwrap() {
            let file = file.unwrap().path();
            std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// The directories of these programs; none, and a word about it, where one is missing.
fn tools(example_name: &str, inside: &str, programs: &[&str]) -> Option<String> {
    let mut path = Vec::new();
    for program in programs {
        match find(&example(example_name), inside, program) {
            Some(found) => path.push(found.parent().unwrap().to_owned()),
            None => {
                eprintln!("SKIPPED: {example_name}: there is no {program} here");
                return None;
            }
        }
    }
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    Some(std::env::join_paths(path).unwrap().into_string().unwrap())
}

fn good(ran: &Ran) {
    assert_eq!(ran.exit, 0, "{}\n{}", ran.out, ran.err);
    assert!(
        ran.out.contains("no crash, none taken for a page"),
        "{}",
        ran.out
    );
}

#[test]
fn javascript_from_new_and_the_example_pass_their_tests() {
    let Some(path) = tools(
        "hackernews-js",
        NODE,
        &["esbuild", "componentize-qjs", "node"],
    ) else {
        return;
    };
    let place = Place::new();
    let with = [("PATH", path.as_str())];
    assert_eq!(place.weir(&["new", "acme-orders", "--lang", "js"]).exit, 0);
    good(&place.weir_with(&["test", "acme-orders"], &with));
    copied("hackernews-js", &place);
    good(&place.weir_with(&["test", "examples/hackernews-js"], &with));
}

#[test]
fn typescript_from_new_passes_its_test_and_its_mistakes_are_found() {
    let programs = ["esbuild", "componentize-qjs", "tsc", "node"];
    let Some(path) = tools("hackernews-js", NODE, &programs) else {
        return;
    };
    let place = Place::new();
    let with = [("PATH", path.as_str())];
    assert_eq!(place.weir(&["new", "acme-orders", "--lang", "ts"]).exit, 0);
    good(&place.weir_with(&["test", "acme-orders"], &with));
    // What is made of the same sources is not made again: it would be another file, and be compiled anew.
    let again = place.weir_with(&["build", "acme-orders", "--json"], &with);
    assert_eq!(again.json()["changed"], false, "{again:?}");

    let file = "acme-orders/src/main.ts";
    place.write(file, &place.read(file).replace("step?.token", "step?.tokn"));
    let wrong = place.weir_with(&["build", "acme-orders"], &with);
    assert_eq!(wrong.exit, 1, "{wrong:?}");
    assert!(
        wrong.err.contains("main.ts") && wrong.err.contains("tokn"),
        "{wrong:?}"
    );
}

#[test]
fn python_from_new_and_the_example_pass_their_tests() {
    let Some(path) = tools("mediawiki-python", VENV, &["componentize-py"]) else {
        return;
    };
    let place = Place::new();
    let with = [("PATH", path.as_str())];
    assert_eq!(
        place.weir(&["new", "acme-orders", "--lang", "python"]).exit,
        0
    );
    good(&place.weir_with(&["test", "acme-orders"], &with));
    copied("mediawiki-python", &place);
    good(&place.weir_with(&["test", "examples/mediawiki-python"], &with));
}

#[test]
fn a_toolchain_that_is_missing_is_named_with_how_to_install_it() {
    let place = Place::new();
    for (language, tool, install) in [
        ("js", "esbuild", "npm install"),
        ("python", "componentize-py", "pip install componentize-py"),
    ] {
        let name = format!("acme-{language}");
        assert_eq!(place.weir(&["new", &name, "--lang", language]).exit, 0);
        let built = place.weir_with(&["build", &name], &[("PATH", "/nowhere")]);
        assert_eq!(built.exit, 1, "{built:?}");
        assert!(
            built.err.contains(&format!("there is no {tool} here")),
            "{}",
            built.err
        );
        assert!(built.err.contains(install), "{}", built.err);
    }
}
