//! `docs/security.md` names a test for each promise: every one of them is there.

use std::fs;

use crate::cargo;

/// Tests that the page names and that are not there.
fn missing(page: &str) -> Vec<String> {
    let named = page.split('`').filter(|text| text.contains(".rs::"));
    named
        .filter(|name| {
            let Some((file, test)) = name.split_once("::") else {
                return true;
            };
            let source = fs::read_to_string(cargo::root().join(file)).unwrap_or_default();
            !source.contains(&format!("fn {test}("))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_test_that_the_page_on_security_names_is_there() {
    let page = fs::read_to_string(cargo::root().join("docs/security.md")).unwrap();
    assert_eq!(missing(&page), Vec::<String>::new());
    assert!(page.matches(".rs::").count() > 30);
    assert_eq!(
        missing("`docs/nowhere.rs::no_test`"),
        ["docs/nowhere.rs::no_test"]
    );
}
