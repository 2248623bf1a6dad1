//! Connectors in JavaScript, TypeScript and Python.

use super::{Files, Names, sdk};

const SCHEMA: (&str, &str) = (
    "src/config.schema.json",
    include_str!("rust/config.schema.json"),
);
const IGNORED: &str = "/data\n/dist\n/node_modules\n/.venv\n__pycache__\n";

pub(super) fn javascript(names: &Names<'_>) -> Files {
    files(
        names,
        &[
            ("package.json", include_str!("js/package.json.txt")),
            ("README.md", include_str!("js/README.md.txt")),
            ("src/main.js", include_str!("js/main.js.txt")),
            (
                ".weir/js/weir.js",
                include_str!("../../../../../sdk/js/weir.js"),
            ),
            (
                ".weir/js/weir.d.ts",
                include_str!("../../../../../sdk/js/weir.d.ts"),
            ),
        ],
        "src/main.js",
    )
}

pub(super) fn typescript(names: &Names<'_>) -> Files {
    files(
        names,
        &[
            ("package.json", include_str!("ts/package.json.txt")),
            ("tsconfig.json", include_str!("ts/tsconfig.json.txt")),
            ("README.md", include_str!("ts/README.md.txt")),
            ("src/main.ts", include_str!("ts/main.ts.txt")),
            (
                ".weir/js/weir.js",
                include_str!("../../../../../sdk/js/weir.js"),
            ),
            (
                ".weir/js/weir.d.ts",
                include_str!("../../../../../sdk/js/weir.d.ts"),
            ),
        ],
        "src/main.ts",
    )
}

pub(super) fn python(names: &Names<'_>) -> Files {
    files(
        names,
        &[
            ("pyproject.toml", include_str!("python/pyproject.toml.txt")),
            ("README.md", include_str!("python/README.md.txt")),
            ("src/app.py", include_str!("python/app.py.txt")),
            (
                ".weir/python/weir.py",
                include_str!("../../../../../sdk/python/weir.py"),
            ),
        ],
        "src/app.py",
    )
}

fn files(names: &Names<'_>, own: &[(&str, &str)], code: &str) -> Files {
    let shared = [
        (".gitignore", IGNORED),
        SCHEMA,
        (
            "walks/two_pages.json",
            include_str!("others/two_pages.json.txt"),
        ),
        (
            "walks/limited.json",
            include_str!("others/limited.json.txt"),
        ),
        ("weir.toml", super::CONFIG),
        ("vendor.toml", super::VENDOR),
    ];
    let mut files: Vec<_> = own
        .iter()
        .chain(&shared)
        .map(|(path, text)| ((*path).to_owned(), names.fill(text)))
        .collect();
    let contract = sdk::contract().map(|(path, text)| (format!(".weir/{path}"), text));
    files.extend(contract);
    let shown = vec![
        (code.to_owned(), "the connector: an example that works"),
        (SCHEMA.0.to_owned(), "what a connection's config may hold"),
        (
            "walks/".to_owned(),
            "recorded answers, and what the connector makes of them",
        ),
        ("vendor.toml".to_owned(), super::SIMULATED),
        ("README.md".to_owned(), "how to go on"),
        (
            ".weir/".to_owned(),
            "helpers and the contract of this version; not to be edited",
        ),
    ];
    (files, shown)
}
