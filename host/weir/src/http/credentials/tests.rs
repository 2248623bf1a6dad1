use super::*;

fn bearer(token: &str) -> Auth {
    Auth::Bearer(Secret::new(token))
}

#[test]
fn each_scheme_signs_in_its_own_way() {
    let sign = |auth: &Auth, scheme: AuthScheme| {
        let mut url = Url::parse("https://api.example.test/x?page=1").unwrap();
        let headers = Credential::new(auth, &[scheme])
            .unwrap()
            .sign(&mut url, false);
        (headers, url.to_string())
    };
    let plain = "https://api.example.test/x?page=1".to_owned();
    assert_eq!(
        sign(&bearer("tok_XYZ"), AuthScheme::Bearer),
        (
            vec![("authorization".into(), "Bearer tok_XYZ".into())],
            plain.clone()
        )
    );
    let basic = Auth::Basic {
        user: Secret::new("Aladdin"),
        password: Secret::new("open sesame"),
    };
    // The example of RFC 7617.
    assert_eq!(
        sign(&basic, AuthScheme::Basic),
        (
            vec![(
                "authorization".into(),
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".into()
            )],
            plain.clone()
        )
    );
    let header = Auth::Header {
        name: None,
        value: Secret::new("k1"),
    };
    assert_eq!(
        sign(&header, AuthScheme::Header("X-Api-Key".into())),
        (vec![("x-api-key".into(), "k1".into())], plain)
    );
    let query = Auth::Query {
        name: Some("key".into()),
        value: Secret::new("k&1"),
    };
    assert_eq!(
        sign(&query, AuthScheme::Query(String::new())),
        (
            Vec::new(),
            "https://api.example.test/x?page=1&key=k%261".to_owned()
        )
    );
}

#[test]
fn a_credential_is_not_sent_unencrypted() {
    let credential = Credential::new(&bearer("tok_XYZ"), &[AuthScheme::Bearer]).unwrap();
    let mut url = Url::parse("http://api.example.test/").unwrap();
    assert!(credential.sign(&mut url, false).is_empty());
    let mut url = Url::parse("http://127.0.0.1:8080/").unwrap();
    assert_eq!(credential.sign(&mut url, false).len(), 1);
}

#[test]
fn auth_that_does_not_fit_says_what_would() {
    let error = Credential::new(
        &bearer("tok_XYZ"),
        &[AuthScheme::Header("X-Api-Key".into())],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "auth = bearer does not fit: the connector accepts header X-Api-Key; example: auth = { header = { env = \"NAME\" } }"
    );
    assert!(Credential::new(&Auth::None, &[AuthScheme::Bearer]).is_err());
    assert!(Credential::new(&Auth::None, &[AuthScheme::Bearer, AuthScheme::None]).is_ok());
}

#[test]
fn fingerprints_tell_credentials_apart_and_nothing_else() {
    let of = |auth: &Auth| fingerprint(auth);
    assert_eq!(of(&bearer("tok_XYZ")), of(&bearer("tok_XYZ")));
    assert_ne!(of(&bearer("tok_XYZ")), of(&bearer("tok_XYz")));
    assert_eq!(of(&bearer("tok_XYZ")).len(), 12);
    let debug = format!(
        "{:?}",
        Credential::new(&bearer("tok_XYZ"), &[AuthScheme::Bearer]).unwrap()
    );
    assert!(!debug.contains("tok_XYZ"));
}

#[test]
fn the_encoded_pair_of_basic_is_masked_and_the_users_name_is_not() {
    let auth = Auth::Basic {
        user: Secret::new("operator"),
        password: Secret::new("hunter22"),
    };
    let credential = Credential::new(&auth, &[AuthScheme::Basic]).unwrap();
    let masked = credential
        .redactor()
        .mask("operator sent Basic b3BlcmF0b3I6aHVudGVyMjI= for hunter22")
        .into_owned();
    assert_eq!(masked, "operator sent Basic [secret] for [secret]");
}
