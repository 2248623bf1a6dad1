//! The Link header: RFC 8288 and what vendors make of it.

use proptest::prelude::*;
use weir_sdk::{Response, link};

const PAGE: &str = "https://api.example.test/v1/items?page=1";

fn next(line: &str) -> Option<String> {
    link::next(
        &Response::new(200, "[]")
            .with_url(PAGE)
            .with_header("Link", line),
    )
}

#[test]
fn the_next_page_is_found() {
    for (line, wanted) in [
        (
            r#"<https://api.example.test/v1/items?page=2>; rel="next""#,
            "https://api.example.test/v1/items?page=2",
        ),
        (
            "<https://api.example.test/a>; rel=next",
            "https://api.example.test/a",
        ),
        (
            r#"<https://api.example.test/a>;rel="last next""#,
            "https://api.example.test/a",
        ),
        (
            r#"<https://api.example.test/a>; REL="NEXT""#,
            "https://api.example.test/a",
        ),
        (
            r#"<https://api.example.test/a> ; title="x" ; rel = "next""#,
            "https://api.example.test/a",
        ),
        // Commas and semicolons inside of <> and of quotes.
        (
            r#"<https://api.example.test/a?x=1,2;3>; title="b, c; rel=\"next\""; rel="prev", </n?y=4,5>; rel="next""#,
            "https://api.example.test/n?y=4,5",
        ),
        // Relative to the page.
        (
            "<?page=2>; rel=next",
            "https://api.example.test/v1/items?page=2",
        ),
        ("<more>; rel=next", "https://api.example.test/v1/more"),
        ("<../v2/more>; rel=next", "https://api.example.test/v2/more"),
        (
            "<//other.example.test/x>; rel=next",
            "https://other.example.test/x",
        ),
        // Any order of relations; of two the first.
        (
            "</p>; rel=prev, </f>; rel=first, </n>; rel=next, </m>; rel=next",
            "https://api.example.test/n",
        ),
        // The page speaks of itself.
        (
            r#"</n>; rel=next; anchor="/v1/items?page=1""#,
            "https://api.example.test/n",
        ),
        // Parameters without a value, empty members of the list.
        (", </n>; foo; rel=next; bar=", "https://api.example.test/n"),
    ] {
        assert_eq!(next(line).as_deref(), Some(wanted), "{line}");
    }
}

#[test]
fn no_next_page_is_made_up() {
    for line in [
        "",
        r#"<https://example.test/schema.json>; rel="describedBy""#,
        r#"</n>; rel="prev"; rel="next""#, // the first rel counts
        r#"</n>; rel="nextish""#,
        r#"</n>; title="rel=next""#,
        r#"</n>; rel=next; anchor="/other""#,
        "https://api.example.test/n; rel=next",
        "</n; rel=next",
    ] {
        assert_eq!(next(line), None, "{line}");
    }
}

#[test]
fn several_header_lines_are_one() {
    let response = Response::new(200, "[]")
        .with_url(PAGE)
        .with_header("link", "</p>; rel=prev")
        .with_header("LINK", "</n>; rel=next");
    assert_eq!(
        link::next(&response).as_deref(),
        Some("https://api.example.test/n")
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        links in prop::collection::vec(("[a-z/?=&,;0-9]{1,20}", "[a-z]{1,8}( [a-z]{1,8})?", r#"[ -~]{0,20}"#), 0..5)
    ) {
        let line: Vec<String> = links
            .iter()
            .map(|(target, rel, title)| {
                let title = title.replace('\\', r"\\").replace('"', r#"\""#);
                format!(r#"<{target}>; title="{title}"; rel="{rel}""#)
            })
            .collect();
        let found = link::parse(&line.join(", "));
        prop_assert_eq!(found.len(), links.len());
        for (link, (target, rel, _)) in found.iter().zip(&links) {
            prop_assert_eq!(&link.target, target);
            prop_assert_eq!(&link.rels.join(" "), rel);
        }
    }

    #[test]
    fn nothing_panics(line in any::<String>(), more in r#"[<>;,="\\ a-z/]{0,60}"#) {
        let _ = (next(&line), next(&more));
    }
}
