//! Clients: what they are made of, and what tells them apart.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_runtime::contract;

use super::{Client, ClientError, Setting};
use crate::config::{ClientAuth, Grant, OAuth2, Secret};

fn settings() -> OAuth2 {
    OAuth2 {
        grant: Grant::RefreshToken,
        client_id: Secret::new("weir-42"),
        client_secret: Some(Secret::new("s3cr3t: é")),
        refresh_token: None,
        account: None,
        token_url: None,
        authorize_url: None,
        device_url: None,
        redirect: None,
        scopes: None,
        client_auth: None,
        params: BTreeMap::new(),
    }
}

fn declared(token_url: &str) -> contract::Oauth2 {
    contract::Oauth2 {
        token_url: token_url.to_owned(),
        authorize_url: None,
        scopes: vec!["read".to_owned()],
        client_in_body: false,
    }
}

fn client_of(
    connection: &str,
    settings: &OAuth2,
    declared: Option<&contract::Oauth2>,
    config: &Value,
) -> Result<Client, ClientError> {
    Client::new(
        settings,
        &Setting {
            connection,
            declared,
            config,
            allow_private: false,
            allow_http: false,
        },
    )
}

fn client(connection: &str, settings: &OAuth2) -> Client {
    let declared = declared("https://id.example.test/token");
    client_of(connection, settings, Some(&declared), &Value::Null)
        .unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
fn the_configuration_comes_before_the_connector() {
    let declared = declared("https://{shop}.example.test/oauth/token/?v=2");
    let config = json!({"shop": "acme"});
    let by_connector = client_of("a", &settings(), Some(&declared), &config)
        .ok()
        .unwrap();
    assert_eq!(
        by_connector.token.url.as_str(),
        "https://acme.example.test/oauth/token/?v=2",
        "a last slash and a query are the vendor's"
    );
    assert_eq!(by_connector.scopes, ["read"]);
    let own = OAuth2 {
        token_url: Some("https://other.example.test/t".to_owned()),
        scopes: Some(vec![]),
        client_auth: Some(ClientAuth::Body),
        ..settings()
    };
    let own = client_of("a", &own, Some(&declared), &config).ok().unwrap();
    assert_eq!(own.token.url.as_str(), "https://other.example.test/t");
    assert!(own.scopes.is_empty() && own.in_body);
}

#[test]
fn a_token_url_that_is_missing_or_may_not_be_called_is_refused() {
    let refused = |url: Option<&str>| {
        let declared = url.map(declared);
        let client = client_of("a", &settings(), declared.as_ref(), &json!({"shop": "a/b"}));
        let error = client.err().unwrap();
        assert_eq!(error.key, "token_url");
        error.problem
    };
    assert!(refused(None).contains("is missing"));
    assert!(refused(Some("http://id.example.test/token")).contains("not encrypted"));
    assert!(refused(Some("ftp://id.example.test/token")).contains("only https"));
    assert!(refused(Some("https://u:p@id.example.test/token")).contains("user or password"));
    assert!(refused(Some("https://{shop}.example.test/token")).contains("shop"));
}

#[test]
fn credentials_are_told_apart_by_whose_they_are() {
    let key = |connection: &str, settings: &OAuth2| client(connection, settings).key().to_owned();
    let plain = settings();
    assert_eq!(key("a", &plain), key("a", &plain));
    assert_ne!(
        key("a", &plain),
        key("b", &plain),
        "each signs in for itself"
    );
    let account = OAuth2 {
        account: Some("acme".to_owned()),
        ..settings()
    };
    assert_eq!(key("a", &account), key("b", &account));
    let token = |token: &str| OAuth2 {
        refresh_token: Some(Secret::new(token)),
        ..settings()
    };
    assert_eq!(key("a", &token("rt_1")), key("b", &token("rt_1")));
    assert_ne!(key("a", &token("rt_1")), key("a", &token("rt_2")));
    let app = OAuth2 {
        grant: Grant::ClientCredentials,
        ..settings()
    };
    assert_eq!(key("a", &app), key("b", &app));
    let narrow = OAuth2 {
        scopes: Some(vec!["less".to_owned()]),
        ..app.clone()
    };
    assert_ne!(key("a", &app), key("a", &narrow));
    let changed = OAuth2 {
        client_secret: Some(Secret::new("another")),
        ..settings()
    };
    assert_eq!(key("a", &plain), key("a", &changed), "its tokens stay");
    let proof = |settings| client("a", settings).proof().to_owned();
    assert_ne!(proof(&plain), proof(&changed), "and it is tried anew");
}

#[test]
fn the_client_proves_itself_once() {
    let header = client("a", &settings());
    // RFC 6749 section 2.3.1: form-encoded, then joined.
    assert_eq!(header.basic().unwrap(), "d2Vpci00MjpzM2NyM3QlM0ErJUMzJUE5");
    let form = |client: &Client| {
        let mut form = Vec::new();
        client.identify(&mut form);
        form.into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
    };
    assert!(form(&header).is_empty());
    let body = client(
        "a",
        &OAuth2 {
            client_auth: Some(ClientAuth::Body),
            ..settings()
        },
    );
    assert_eq!(body.basic(), None);
    assert_eq!(
        form(&body),
        ["client_id=weir-42", "client_secret=s3cr3t: é"]
    );
    let public = client(
        "a",
        &OAuth2 {
            client_secret: None,
            ..settings()
        },
    );
    assert_eq!(public.basic(), None);
    assert_eq!(form(&public), ["client_id=weir-42"]);
    let masked = header
        .redactor()
        .mask("weir-42 d2Vpci00MjpzM2NyM3QlM0ErJUMzJUE5 s3cr3t%3A+%C3%A9");
    assert_eq!(masked, "weir-42 [secret] [secret]");
}
