use super::*;
use proptest::prelude::*;
use serde_json::json;

fn origin(base: &str) -> Origin {
    Origin::new("{base_url}", &json!({ "base_url": base }), false, false).unwrap()
}

fn path(origin: &Origin, path: &str) -> Result<String, GuardError> {
    origin
        .resolve(&Target::Path(path.to_owned()), &[], None)
        .map(|resolved| resolved.url.into())
}

fn link(origin: &Origin, link: &str) -> Result<String, GuardError> {
    origin
        .resolve(&Target::Link(link.to_owned()), &[], None)
        .map(|resolved| resolved.url.into())
}

#[test]
fn a_template_takes_plain_words_only() {
    let shop = |name: &str| {
        Origin::new(
            "https://{shop}.example.com/admin",
            &json!({ "shop": name }),
            false,
            false,
        )
        .map(|origin| origin.base().to_string())
    };
    assert_eq!(
        shop("acme-eu").unwrap(),
        "https://acme-eu.example.com/admin"
    );
    for bad in [
        "",
        "evil.test/",
        "evil.test#",
        "evil.test?",
        "a@b",
        "a:1",
        "a\\b",
        "..",
        ".",
        "a..b",
        "a b",
        "a\nb",
        "%2f",
        "ünicode",
        "{x}",
    ] {
        assert!(shop(bad).is_err(), "{bad:?}");
    }
    let missing = Origin::new("https://{shop}.example.com", &json!({}), false, false);
    assert_eq!(
        missing.unwrap_err().to_string(),
        "origin https://{shop}.example.com: config.shop is missing"
    );
}

#[test]
fn a_whole_host_may_have_a_port() {
    let host = |name: &str| {
        Origin::new("https://{host}/api", &json!({ "host": name }), false, false)
            .map(|origin| origin.base().to_string())
    };
    assert_eq!(
        host("erp.acme.test:8443").unwrap(),
        "https://erp.acme.test:8443/api"
    );
    assert!(host("erp.acme.test:x").is_err());
    assert!(host("u@erp.acme.test").is_err());
}

#[test]
fn only_https_loopback_or_the_users_word() {
    let make = |url: &str, http| Origin::new("{u}", &json!({ "u": url }), false, http);
    assert!(make("https://api.example.test/v1", false).is_ok());
    for loopback in [
        "http://127.0.0.1:8080",
        "http://localhost:1",
        "http://[::1]:2/",
        "http://0x7f.1",
        "http://2130706433",
    ] {
        let origin = make(loopback, false).unwrap();
        assert!(origin.addresses().loopback, "{loopback}");
    }
    assert!(make("http://api.example.test", false).is_err());
    assert!(make("http://api.example.test", true).is_ok());
    for bad in [
        "ftp://api.example.test",
        "https://u:p@api.example.test",
        "https://api.example.test/?k=v",
        "api.example.test",
        "https://",
    ] {
        assert!(make(bad, true).is_err(), "{bad}");
    }
}

#[test]
fn paths_stay_below_the_base() {
    let api = origin("https://api.example.test/v1/");
    assert_eq!(
        path(&api, "orders").unwrap(),
        "https://api.example.test/v1/orders"
    );
    assert_eq!(
        path(&api, "/orders/7").unwrap(),
        "https://api.example.test/v1/orders/7"
    );
    assert_eq!(path(&api, "").unwrap(), "https://api.example.test/v1");
    assert_eq!(
        path(&api, "projects/a%2Fb").unwrap(),
        "https://api.example.test/v1/projects/a%2Fb"
    );
    assert_eq!(
        path(&api, "docs:batch").unwrap(),
        "https://api.example.test/v1/docs:batch"
    );
    for bad in [
        "../admin",
        "/../admin",
        "a/../../b",
        "a/%2e%2e/b",
        "a/.%2E/b",
        "..%2fadmin",
        "..%5cadmin",
        "//evil.test/x",
        "https://evil.test/x",
        "a?b=c",
        "a#b",
        "\\\\evil.test",
        "a\nb",
        "a/./b",
    ] {
        assert!(path(&api, bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_query_is_encoded_pair_by_pair() {
    let api = origin("https://api.example.test");
    let query = [
        ("q".to_owned(), "a b&c=d+é#".to_owned()),
        ("page[size]".to_owned(), "5".to_owned()),
    ];
    let url = api
        .resolve(&Target::Path("x".into()), &query, None)
        .unwrap()
        .url;
    assert_eq!(
        url.query(),
        Some("q=a%20b%26c%3Dd%2B%C3%A9%23&page%5Bsize%5D=5")
    );
    let next = Target::Link("https://api.example.test/x?cursor=a%2fb".into());
    let url = api
        .resolve(&next, &[("n".to_owned(), "1".to_owned())], None)
        .unwrap()
        .url;
    assert_eq!(url.query(), Some("cursor=a%2fb&n=1"));
}

#[test]
fn links_must_lie_at_the_origin() {
    let api = origin("https://api.example.test/v1");
    assert_eq!(
        link(&api, "https://API.example.test:443/items?p=2").unwrap(),
        "https://api.example.test/items?p=2"
    );
    for bad in [
        "https://evil.test/",
        "https://api.example.test@evil.test/",
        "https://u@api.example.test/",
        "//evil.test/",
        "https://api.example.test:8443/",
        "http://api.example.test:81/",
        "https://api.example.test./",
        "ftp://api.example.test/",
        "javascript:alert(1)",
        "https:\\\\evil.test",
        "data:,x",
        "https://api.example.test.evil.test/",
    ] {
        assert!(link(&api, bad).is_err(), "{bad:?}");
    }
    let text = link(&api, "https://evil.test/a?api_key=S3CR3T")
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("https://evil.test/a") && !text.contains("S3CR3T"),
        "{text}"
    );
}

#[test]
fn a_relative_link_is_read_from_the_page_that_gave_it() {
    let api = origin("https://api.example.test/v1");
    let from = Url::parse("https://api.example.test/v1/items?page=1").unwrap();
    let next = api
        .resolve(&Target::Link("?page=2".into()), &[], Some(&from))
        .unwrap();
    assert_eq!(
        next.url.as_str(),
        "https://api.example.test/v1/items?page=2"
    );
}

#[test]
fn case_095_a_plain_link_of_an_encrypted_origin_is_called_encrypted() {
    let api = origin("https://api.example.test:8443");
    let next = api
        .resolve(
            &Target::Link("http://api.example.test/items?page=2".into()),
            &[],
            None,
        )
        .unwrap();
    assert_eq!(
        next.url.as_str(),
        "https://api.example.test:8443/items?page=2"
    );
    assert!(
        next.note
            .is_some_and(|note| note.contains("http://api.example.test/items"))
    );
}

#[test]
fn query_parameters_are_replaced_by_name_and_others_kept_as_written() {
    let mut url = Url::parse("https://a.test/?x=%7e&api%5Fkey=old&y=a+b&api_key=older").unwrap();
    set_query_parameter(&mut url, "api_key", "n&w");
    assert_eq!(url.query(), Some("x=%7e&y=a+b&api_key=n%26w"));
    remove_query_parameter(&mut url, "api_key");
    assert_eq!(url.query(), Some("x=%7e&y=a+b"));
}

proptest! {
    #[test]
    fn no_path_leaves_the_base(text in "[a-z./\\\\%2eEfF5cC:@?#\\[\\]~ \\t\\n\u{0}é-]{0,24}|.{0,24}") {
        let api = origin("https://api.example.test:8443/v1/data");
        if let Ok(resolved) = api.resolve(&Target::Path(text), &[], None) {
            prop_assert!(api.covers(&resolved.url));
            prop_assert!(!has_userinfo(&resolved.url));
            let path = resolved.url.path();
            prop_assert!(path == "/v1/data" || path.starts_with("/v1/data/"), "{path}");
            prop_assert!(!path.split('/').any(climbs));
            prop_assert!(resolved.url.query().is_none());
            // What goes over the wire is read the same by the next parser.
            prop_assert_eq!(&Url::parse(resolved.url.as_str()).unwrap(), &resolved.url);
        }
    }

    #[test]
    fn no_link_leaves_the_origin(
        text in "(https?:)?[/\\\\]{0,3}(api\\.example\\.test|evil\\.test)?[@:.#?/\\\\a-z0-9\\[\\]%]{0,16}|.{0,32}",
    ) {
        let api = origin("https://api.example.test:8443/v1");
        if let Ok(resolved) = api.resolve(&Target::Link(text), &[], None) {
            prop_assert!(api.covers(&resolved.url));
            prop_assert!(!has_userinfo(&resolved.url));
            prop_assert!(api.covers(&Url::parse(resolved.url.as_str()).unwrap()));
        }
    }

    #[test]
    fn no_config_value_changes_the_hosts_structure(text in "[a-z.:/@#?%\\\\ \\t{}-]{0,16}|.{0,16}") {
        if let Ok(origin) = Origin::new("https://{shop}.example.com/admin", &json!({ "shop": text }), false, false) {
            prop_assert!(origin.base().host_str().is_some_and(|host| host.ends_with(".example.com")));
            prop_assert_eq!(origin.base().path(), "/admin");
            prop_assert_eq!(origin.base().port(), None);
        }
    }

    #[test]
    fn a_query_never_leaks_into_another_part(name in ".{0,12}", value in ".{0,12}") {
        let api = origin("https://api.example.test");
        let pairs = [(name, value)];
        let resolved = api.resolve(&Target::Path("x".into()), &pairs, None).unwrap();
        let read: Vec<(String, String)> = resolved.url.query_pairs().into_owned().collect();
        prop_assert_eq!(read, pairs.to_vec());
        prop_assert_eq!(resolved.url.path(), "/x");
    }
}
