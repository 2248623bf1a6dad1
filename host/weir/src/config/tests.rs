use super::*;
use proptest::proptest;

fn read(text: &str) -> Result<Config, ConfigErrors> {
    let env = |name: &str| match name {
        "SHOP_TOKEN" => Some("tok_XYZ\n".to_owned()),
        "EMPTY" => Some(" ".to_owned()),
        _ => None,
    };
    parse(Path::new("/etc/weir/weir.toml"), text, &env, None)
}

fn errors(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

const WHOLE: &str = r#"
[host]
data = "/var/lib/weir"
concurrency = 8
timeout = { connect = "5s", total = "2m" }
max_body = "4MiB"

[connection.shop]
connector = "rest"
auth = { bearer = { env = "SHOP_TOKEN" } }
config = { base_url = "https://api.example.test", page = { size = 100 }, since = 2024-01-01 }
defaults = { reserve = 20 }
streams.orders = { freshness = "1m", interval = { min = "10s", strategy = "reset" }, overlap = "5m" }
streams.returns = { interval = "1h", overlap = { fixed = "1d" }, start = 2024-01-01, volatile = ["/score"] }
streams.old = { enabled = false }

[connection.oss]
connector = "github"
pause = true

[sink.main]
type = "file"
path = "out/{connection}/{stream}.ndjson"
rotate = { size = "100MB", every = "day" }
"#;

#[test]
fn a_whole_configuration_is_read() {
    let config = read(WHOLE).unwrap();
    assert_eq!(config.host.data, Path::new("/var/lib/weir"));
    assert_eq!(config.host.connectors, Path::new("/etc/weir/connectors"));
    assert_eq!(
        (config.host.concurrency, config.host.max_body),
        (8, 4 << 20)
    );
    assert_eq!(config.host.timeout.connect.as_secs(), 5);
    assert_eq!(config.host.timeout.idle.as_secs(), 30);

    let shop = &config.connections["shop"];
    assert_eq!(
        shop.auth,
        Auth::Bearer(Secret::from_source(
            "tok_XYZ",
            SecretSource::Env("SHOP_TOKEN".into())
        ))
    );
    assert_eq!(
        &*shop.config,
        r#"{"base_url":"https://api.example.test","page":{"size":100},"since":"2024-01-01"}"#
    );
    let orders = shop.stream("orders").unwrap();
    assert_eq!((orders.freshness, orders.reserve), (Some(60_000), 20));
    assert_eq!(
        orders.interval,
        Interval {
            min: Some(10_000),
            max: None,
            strategy: super::Strategy::Reset
        }
    );
    assert_eq!(orders.overlap, Overlap::Floor(Some(300_000)));
    let returns = shop.stream("returns").unwrap();
    assert_eq!(
        (returns.interval.min, returns.interval.max),
        (Some(3_600_000), Some(3_600_000))
    );
    assert_eq!(returns.overlap, Overlap::Fixed(86_400_000));
    assert_eq!(returns.start, Some(1_704_067_200_000));
    assert_eq!(returns.volatile, ["/score"]);
    assert_eq!(shop.stream("old"), None);
    assert_eq!(shop.stream("never-heard-of"), None);

    let oss = &config.connections["oss"];
    assert!(oss.pause && oss.streams.is_none() && oss.stream("issues").is_some());
    assert_eq!(
        config.sinks["main"],
        SinkConfig::File {
            path: "/etc/weir/out/{connection}/{stream}.ndjson".into(),
            rotate: Rotate {
                size: Some(100_000_000),
                every: Some(Every::Day)
            },
        }
    );
    assert_eq!(config.warnings, []);
}

#[test]
fn an_empty_file_has_all_defaults_and_stdout() {
    let config = read("").unwrap();
    assert_eq!(config.host.data, Path::new("/etc/weir/data"));
    assert_eq!(
        config.sinks.into_iter().collect::<Vec<_>>(),
        [("stdout".to_owned(), SinkConfig::Stdout)]
    );
}

#[test]
fn case_167_every_mistake_is_told_with_line_key_value_and_example() {
    let told = errors(
        r#"
[connection.shop]
connector = "rest"
auth = { bearer = { env = "NOT_SET" } }
[connection.shop.streams.orders]
interval = "5seconds"
overlap = "5"
freshness = 30
[connection.other]
connector = "rest"
auth = { bearer = { env = "EMPTY" } }
intervall = "5s"
streams.orders = { intervall = "5s" }
"#,
    );
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "/etc/weir/weir.toml:4: connection.shop.auth.bearer.env: environment variable NOT_SET is not set; set it before the start, for example: export NOT_SET=...",
            "/etc/weir/weir.toml:6: connection.shop.streams.orders.interval = \"5seconds\": is not a duration: it has a unit that is not known; allowed: a whole number and a unit: ms, s, m, h or d; example: \"30s\"",
            "/etc/weir/weir.toml:7: connection.shop.streams.orders.overlap = \"5\": is not a duration: it has no unit; allowed: a whole number and a unit: ms, s, m, h or d; example: \"30s\"",
            "/etc/weir/weir.toml:8: connection.shop.streams.orders.freshness = 30: is an integer, not a duration; allowed: a whole number and a unit: ms, s, m, h or d; example: \"30s\"",
            "/etc/weir/weir.toml:11: connection.other.auth.bearer.env: the secret from environment variable EMPTY is empty; allowed: { env = \"NAME\" }, { file = \"path\" }, { command = [\"program\", \"argument\"] } or { systemd = \"name\" }; example: { env = \"SHOP_TOKEN\" }",
            "/etc/weir/weir.toml:12: connection.other.intervall: is not a known key; known here: connector, auth, config, defaults, streams, allow_private, allow_http, pause",
            "/etc/weir/weir.toml:13: connection.other.streams.orders.intervall = \"5s\": is not a known key; did you mean interval? Known here: enabled, freshness, interval, overlap, settle, start, volatile, page_size, reserve, priority, backoff, quiet, dedup",
        ],
        "{told}"
    );
}

#[test]
fn case_167_the_same_connection_twice_is_told_by_its_name() {
    let told = errors(
        "[connection.shop]\nconnector = \"rest\"\n[connection.shop]\nconnector = \"github\"\n",
    );
    assert!(
        told.starts_with("/etc/weir/weir.toml:3: connection.shop: is defined a second time here"),
        "{told}"
    );
    let told = errors("[connection.shop]\nconnector = \"rest\"\nconnector = \"github\"\n");
    assert!(
        told.starts_with("/etc/weir/weir.toml:3: connector: is defined a second time here"),
        "{told}"
    );
}

#[test]
fn case_027_limits_the_wrong_way_round_are_refused_with_both_named() {
    let streams = |text: &str| {
        errors(&format!(
            "[connection.a]\nconnector = \"rest\"\nstreams.s = {{ {text} }}\n"
        ))
    };
    let told = streams("backoff = { base = \"100ms\", cap = \"30ms\" }");
    assert!(
        told.contains("streams.s.backoff: base (100 ms) is longer than cap (30 ms)"),
        "{told}"
    );
    let told = streams("interval = { min = \"1h\", max = \"1m\" }");
    assert!(
        told.contains("streams.s.interval: min (3600000 ms) is longer than max (60000 ms)"),
        "{told}"
    );
    let told = streams("backoff = { base = \"0s\", cap = \"0s\" }");
    assert_eq!(
        told.matches("is not a duration: it is zero").count(),
        2,
        "{told}"
    );
    let told = streams("interval = { min = \"5m\" }, freshness = \"1m\"");
    assert!(
        told.contains("freshness (60000 ms) is shorter than interval.min (300000 ms)"),
        "{told}"
    );
    let told = errors("[host]\ntimeout = { connect = \"2m\" }\n");
    assert!(
        told.contains("host.timeout: connect (120s) is longer than total (60s)"),
        "{told}"
    );
}

#[test]
fn no_secret_is_shown_whatever_is_wrong_around_it() {
    let connection = |auth: &str| format!("[connection.a]\nconnector = \"rest\"\n{auth}\n");
    for auth in [
        "auth = \"S3CR3T\"",
        "auth = { bearer = { env = \"SHOP_TOKEN\", fil = \"S3CR3T\" } }",
        "auth = { token = \"S3CR3T\" }",
        "auth = { barer = \"S3CR3T\" }",
        "auth = { basic = { user = \"ops\", pasword = \"S3CR3T\" } }",
        "auth = { basic = \"S3CR3T\" }",
        "auth = { header = { name = \"S3CR3T S3CR3T\", value = \"S3CR3T\" } }",
        "auth = { bearer = [\"S3CR3T\"] }",
        "auth = { bearer = { env = [\"S3CR3T\"] } }",
        "auth = { bearer = \"S3CR3T\\nS3CR3T\" }",
        "bearer = \"S3CR3T\"",
        "token = \"S3CR3T\"",
        "api_key = \"S3CR3T\"",
        "config = { token = \"S3CR3T\" }\nauth = 1",
        "auth = { bearer = S3CR3T }",
        "auth = { bearer = \"S3CR3T }",
        "auth = { bearer = \"S3CR3T\" \"S3CR3T\" }",
        "auth = { bearer = \"S3CR3T\" }\nauth = { bearer = \"S3CR3T\" }",
    ] {
        let told = read(&connection(auth)).unwrap_err();
        let text = format!("{told} {told:?}");
        assert!(!text.contains("S3CR3T"), "{auth}\n{text}");
    }
}

#[test]
fn an_inline_secret_works_with_a_warning_that_does_not_show_it() {
    let config =
        read("[connection.a]\nconnector = \"rest\"\nauth = { bearer = \"S3CR3T\" }\n").unwrap();
    assert!(
        matches!(&config.connections["a"].auth, Auth::Bearer(secret) if secret.reveal() == "S3CR3T")
    );
    assert_eq!(config.warnings.len(), 1);
    assert!(
        config.warnings[0]
            .to_string()
            .starts_with("/etc/weir/weir.toml:3: connection.a.auth.bearer: ")
    );
    assert!(!format!("{config:?}").contains("S3CR3T"));
}

#[test]
fn every_way_to_authenticate_is_read() {
    let auth = |text: &str| {
        let config = read(&format!(
            "[connection.a]\nconnector = \"rest\"\nauth = {text}\n"
        ));
        config.map(|config| config.connections["a"].auth.clone())
    };
    let value = Secret::from_source("tok_XYZ", SecretSource::Env("SHOP_TOKEN".into()));
    assert_eq!(auth("\"none\"").unwrap(), Auth::None);
    assert_eq!(
        auth("{ header = { env = \"SHOP_TOKEN\" } }").unwrap(),
        Auth::Header {
            name: None,
            value: value.clone()
        }
    );
    assert_eq!(
        auth("{ query = { name = \"key\", value = { env = \"SHOP_TOKEN\" } } }").unwrap(),
        Auth::Query {
            name: Some("key".to_owned()),
            value: value.clone()
        }
    );
    assert_eq!(
        auth("{ basic = { user = { env = \"SHOP_TOKEN\" }, password = \"\" } }").unwrap(),
        Auth::Basic {
            user: value,
            password: Secret::new("")
        }
    );
    for bad in [
        "{}",
        "{ bearer = { env = \"SHOP_TOKEN\" }, query = { env = \"SHOP_TOKEN\" } }",
        "{ basic = { user = \"a:b\", password = { env = \"SHOP_TOKEN\" } } }",
        "{ bearer = {} }",
        "{ header = { name = \"x y\", value = { env = \"SHOP_TOKEN\" } } }",
    ] {
        assert!(auth(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_secret_file_is_read_from_the_configurations_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    std::fs::write(
        &path,
        "[connection.a]\nconnector = \"rest\"\nauth = { bearer = { file = \"token\" } }\n",
    )
    .unwrap();
    let load = || load_with(&path, &|_| None);
    assert!(load().unwrap_err().to_string().contains("cannot be read"));
    std::fs::write(folder.path().join("token"), "\n").unwrap();
    set_mode(&folder.path().join("token"), 0o600);
    assert!(load().unwrap_err().to_string().contains("is empty"));
    std::fs::write(folder.path().join("token"), "tok_XYZ\r\n").unwrap();
    let config = load().unwrap();
    assert!(
        matches!(&config.connections["a"].auth, Auth::Bearer(secret) if secret.reveal() == "tok_XYZ")
    );
    assert_eq!(config.warnings, []);
    for mode in [0o644, 0o640, 0o604] {
        set_mode(&folder.path().join("token"), mode);
        let told = load().unwrap_err().to_string();
        assert!(
            told.contains("can be read by other users") && told.contains("chmod 600"),
            "{told}"
        );
        assert!(!told.contains("tok_XYZ"));
    }
}

#[test]
fn a_secret_may_be_the_output_of_a_command_that_no_shell_reads() {
    let secret = |command: &str| {
        read(&format!(
            "[connection.a]\nconnector = \"rest\"\nauth = {{ bearer = {{ command = {command} }} }}\n"
        ))
        .map(|config| match &config.connections["a"].auth {
            Auth::Bearer(secret) => (secret.reveal().to_owned(), secret.source().to_string()),
            other => panic!("{other:?}"),
        })
        .map_err(|errors| errors.to_string())
    };
    assert_eq!(
        secret(r#"["printf", "tok_%s\n", "$HOME;x"]"#).unwrap(),
        ("tok_$HOME;x".to_owned(), "command printf".to_owned())
    );
    for (command, told) in [
        (r#"["false", "S3CR3T"]"#, "it ended with exit status: 1"),
        (r#"["true"]"#, "is empty"),
        (r#"["no-such-program-here"]"#, "it does not start"),
        (r#"["printf", "a\nb"]"#, "control character"),
        ("[]", "names no program"),
        (r#""printf tok""#, "not a list of strings"),
    ] {
        let error = secret(command).unwrap_err();
        assert!(
            error.contains(told) && !error.contains("S3CR3T"),
            "{command}: {error}"
        );
    }
}

#[test]
fn a_secret_may_be_a_credential_of_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    let load = |name: &str, env: &dyn Fn(&str) -> Option<String>| {
        let text = format!(
            "[connection.a]\nconnector = \"rest\"\nauth = {{ bearer = {{ systemd = \"{name}\" }} }}\n"
        );
        std::fs::write(&path, text).unwrap();
        load_with(&path, env)
    };
    let directory = folder.path().display().to_string();
    let by_systemd = |name: &str| (name == "CREDENTIALS_DIRECTORY").then(|| directory.clone());
    std::fs::write(folder.path().join("shop"), "tok_XYZ\n").unwrap();
    let config = load("shop", &by_systemd).unwrap();
    assert!(
        matches!(&config.connections["a"].auth, Auth::Bearer(secret) if secret.reveal() == "tok_XYZ")
    );
    let told = load("shop", &|_| None).unwrap_err().to_string();
    assert!(told.contains("LoadCredential="), "{told}");
    let told = load("../shop", &by_systemd).unwrap_err().to_string();
    assert!(told.contains("is not the name of a credential"), "{told}");
}

#[test]
fn who_only_asks_a_running_host_needs_no_secret_and_runs_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    let mark = folder.path().join("it-ran");
    let text = format!(
        "[host]\ndata = \"store\"\n[connection.a]\nconnector = \"rest\"\nauth = {{ bearer = {{ env = \"NOT_SET\" }} }}\n\
         [connection.b]\nconnector = \"rest\"\nauth = {{ bearer = {{ command = [\"touch\", {mark:?}] }} }}\n\
         [connection.c]\nconnector = \"rest\"\nauth = {{ bearer = {{ file = \"gone\" }} }}\n\
         [connection.d]\nconnector = \"rest\"\nauth = {{ bearer = {{ systemd = \"shop\" }} }}\n"
    );
    std::fs::write(&path, text).unwrap();
    assert_eq!(load_host(&path).unwrap().data, folder.path().join("store"));
    assert!(!mark.exists());
    let simulated = load_simulated(&path).unwrap();
    for connection in simulated.connections.values() {
        let Auth::Bearer(secret) = &connection.auth else {
            panic!("{:?}", connection.auth);
        };
        assert_eq!(secret.reveal(), "simulated");
    }
    assert!(!mark.exists());
    let told = load_with(&path, &|_| None).unwrap_err();
    assert_eq!(told.0.len(), 4, "{told}");
    assert!(mark.exists());
}

#[test]
fn renewed_credentials_are_read_and_their_mistakes_named() {
    let oauth2 = |text: &str| {
        read(&format!(
            "[connection.a]\nconnector = \"rest\"\nauth = {{ oauth2 = {{ {text} }} }}\n"
        ))
        .map(|config| match &config.connections["a"].auth {
            Auth::OAuth2(oauth2) => (**oauth2).clone(),
            other => panic!("{other:?}"),
        })
        .map_err(|errors| errors.to_string())
    };
    let least = oauth2(r#"client_id = "weir-42""#).unwrap();
    assert_eq!(least.grant, Grant::RefreshToken);
    assert_eq!(least.client_id.reveal(), "weir-42");
    assert!(least.client_secret.is_none() && least.scopes.is_none());
    let full = oauth2(
        r#"grant = "refresh-token", client_id = { env = "SHOP_TOKEN" }, client_secret = { env = "SHOP_TOKEN" },
           account = "acme", token_url = "https://id.example.test/token/?v=2", authorize_url = "https://id.example.test/in",
           device_url = "https://id.example.test/device", redirect = "http://localhost:8912/callback",
           scopes = ["read", "list:all"], client_auth = "body", params = { audience = "https://api.example.test" }"#
            .replace('\n', " ")
            .as_str(),
    )
    .unwrap();
    assert_eq!(
        full.token_url.unwrap(),
        "https://id.example.test/token/?v=2"
    );
    assert_eq!(full.client_auth, Some(ClientAuth::Body));
    assert_eq!(full.scopes.unwrap(), ["read", "list:all"]);
    assert_eq!(full.params["audience"], "https://api.example.test");

    for (text, key, told) in [
        ("", "oauth2", "needs a client_id"),
        (r#"client_id = """#, "oauth2.client_id", "is empty"),
        (
            r#"client_id = "a", grant = "password""#,
            "oauth2.grant",
            "is not known",
        ),
        (
            r#"client_id = "a", grant = "client-credentials""#,
            "oauth2",
            "needs a client_secret",
        ),
        (
            r#"client_id = "a", grant = "client-credentials", client_secret = { env = "SHOP_TOKEN" }, refresh_token = { env = "SHOP_TOKEN" }"#,
            "oauth2.refresh_token",
            "belongs to the grant refresh-token",
        ),
        (
            r#"client_id = "a", token_url = "http://id.example.test/token""#,
            "oauth2.token_url",
            "is not encrypted",
        ),
        (
            r#"client_id = "a", token_url = "id.example.test""#,
            "oauth2.token_url",
            "is not a URL",
        ),
        (
            r#"client_id = "a", token_url = "https://u:S3CR3T@id.example.test""#,
            "oauth2.token_url",
            "user or password",
        ),
        (
            r#"client_id = "a", redirect = "https://acme.example.test/cb""#,
            "oauth2.redirect",
            "is not a loopback URL",
        ),
        (
            r#"client_id = "a", scopes = ["a b"]"#,
            "oauth2.scopes",
            "is not one word",
        ),
        (
            r#"client_id = "a", params = { code = "S3CR3T" }"#,
            "oauth2.params.code",
            "set by weir itself",
        ),
        (
            r#"client_id = "a", client_secrt = "S3CR3T""#,
            "oauth2.client_secrt",
            "did you mean client_secret",
        ),
        (
            r#"client_id = "a", account = "x", refresh_token = { env = "SHOP_TOKEN" }"#,
            "oauth2.account",
            "beside a refresh_token",
        ),
    ] {
        let error = oauth2(text).unwrap_err();
        let place = format!("/etc/weir/weir.toml:3: connection.a.auth.{key}: ");
        assert!(
            error
                .lines()
                .any(|line| line.starts_with(&place) && line.contains(told)),
            "{text}: {error}"
        );
        assert!(!error.contains("S3CR3T"), "{error}");
    }
    let allowed = read(
        "[connection.a]\nconnector = \"rest\"\nallow_http = true\n\
         auth = { oauth2 = { client_id = \"a\", token_url = \"http://id.example.test/token\" } }\n",
    );
    assert!(allowed.is_ok(), "{allowed:?}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    let told = load_with(&path, &|_| None).unwrap_err().to_string();
    assert!(
        told.contains("weir.toml") && told.contains("cannot be read"),
        "{told}"
    );
    std::fs::write(&path, b"a = \xff").unwrap();
    let told = load_with(&path, &|_| None).unwrap_err().to_string();
    assert!(told.contains("is not UTF-8: byte 4"), "{told}");
}

#[test]
fn names_types_and_templates_are_checked() {
    for (text, part) in [
        (
            "[connection.Shop]\nconnector = \"rest\"",
            "connection.Shop: is not a name",
        ),
        ("[connection.a]", "connection.a.connector: is missing"),
        (
            "[connection.a]\nconnector = 7",
            "connector = 7: is an integer, not a string",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nconfig = 7",
            "config = 7: is an integer, not a table",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nconfig = { x = nan }",
            "config.x = nan: is a number that JSON does not have",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\npause = \"yes\"",
            "pause = \"yes\": is a string, not true or false",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nstreams.s = { start = \"soon\" }",
            "start = \"soon\": is not a date",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nstreams.s = { volatile = [\"score\"] }",
            "holds \"score\", which is not a JSON pointer",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nstreams.s = { page_size = 0 }",
            "page_size = 0: is out of range; allowed: a whole number from 1 to 100000",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nstreams.s = { priority = \"higher\" }",
            "did you mean high?",
        ),
        ("[sink.a]\ntype = \"fil\"", "did you mean file?"),
        ("[sink.a]\npath = \"x\"", "sink.a.type: is missing"),
        ("[sink.a]\ntype = \"file\"", "sink.a.path: is missing"),
        (
            "[sink.a]\ntype = \"file\"\npath = \"{conection}\"",
            "names {conection}, which is not known",
        ),
        (
            "[sink.a]\ntype = \"file\"\npath = \"a}\"",
            "has a brace without its other half",
        ),
        (
            "[sink.a]\ntype = \"file\"\npath = \"x/{stream}\"\n[sink.b]\ntype = \"file\"\npath = \"./x/{stream}\"",
            "sink.b.path: is the path of sink.a as well",
        ),
        ("[sink.a]\ntype = \"stdout\"\npath = \"x\"", "sink.a.path"),
        (
            "[host]\nmax_body = \"1GiB\"",
            "host.max_body = \"1GiB\": is out of range",
        ),
        ("[host]\nworkers = 0", "host.workers = 0: is out of range"),
        ("[hosts]", "hosts: is not a known key; did you mean host?"),
        (
            "connection = 7",
            "connection = 7: is an integer, not a table",
        ),
        (
            "[connection.a]\nconnector = \"rest\"\nfreshness = \"1m\"",
            "connection.a.freshness = \"1m\": is a setting of streams; write defaults.freshness",
        ),
        ("a = [", "this is not TOML"),
    ] {
        let told = errors(text);
        assert!(told.contains(part), "{text}\n{told}");
    }
}

#[test]
fn every_key_of_a_stream_is_known_to_its_table() {
    for key in StreamSettings::KEYS {
        let text = format!("[connection.a]\nconnector = \"rest\"\nstreams.s = {{ {key} = nan }}\n");
        let told = errors(&text);
        assert!(
            told.contains(&format!("connection.a.streams.s.{key}")),
            "{told}"
        );
        assert!(!told.contains("is not a known key"), "{told}");
    }
}

#[test]
fn a_webhook_is_read_and_its_mistakes_are_named() {
    let hook = |more: &str| format!("[sink.hook]\ntype = \"webhook\"\n{more}");
    for (more, told) in [
        ("", "sink.hook.url: is missing"),
        ("url = \"ingest.example.test\"", "is not an https address"),
        (
            "url = \"ftp://ingest.example.test\"",
            "is not an https address",
        ),
        ("url = \"http://ingest.example.test\"", "is not encrypted"),
        (
            "url = \"https://me:pw@ingest.example.test\"",
            "holds a user or a password",
        ),
        ("url = { env = \"NOT_SET\" }", "NOT_SET is not set"),
    ] {
        let text = errors(&hook(more));
        assert!(text.contains(told), "{more}: {text}");
        assert!(!text.contains("pw@"), "{text}");
    }
    let url = "url = \"https://ingest.example.test/a?k=v\"\n";
    for (more, told) in [
        ("batch = { records = 0 }", "sink.hook.batch.records"),
        ("batch = { bytes = \"1GiB\" }", "\"1KiB\" to \"16MiB\""),
        ("format = \"jsn\"", "did you mean json?"),
        ("tries = 0", "from 1 to 100"),
        ("trys = 3", "did you mean tries?"),
        ("headers = { Authorization = \"x\" }", "weir sets itself"),
        ("headers = { Idempotency-Key = \"x\" }", "weir sets itself"),
        (
            "auth = { header = { env = \"SHOP_TOKEN\" } }",
            "needs a name",
        ),
        (
            "backoff = { base = \"5m\", cap = \"1m\" }",
            "is longer than cap",
        ),
    ] {
        let text = errors(&hook(&format!("{url}{more}")));
        assert!(text.contains(told), "{more}: {text}");
    }
    let config = read(&hook(&format!(
        "{url}headers = {{ X-Team = \"data\", X-Key = {{ env = \"SHOP_TOKEN\" }} }}\ngzip = true"
    )))
    .unwrap();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let SinkConfig::Webhook(hook) = &config.sinks["hook"] else {
        panic!("{:?}", config.sinks);
    };
    assert_eq!(
        hook.url.reveal().as_str(),
        "https://ingest.example.test/a?k=v"
    );
    assert_eq!(hook.url.to_string(), "https://ingest.example.test");
    let headers: Vec<_> = hook
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.reveal()))
        .collect();
    assert_eq!(headers, [("x-team", "data"), ("x-key", "tok_XYZ")]);
    assert_eq!((hook.gzip, hook.tries), (true, 6));
}

#[test]
fn what_is_found_out_later_still_has_its_line() {
    let config = read(WHOLE).unwrap();
    let schema = r#"{"properties":{"page":{"properties":{"size":{"maximum":50}}}}}"#;
    let found =
        validate_connector_config(schema, &config.connections["shop"].config, "shop").unwrap_err();
    let error = config.source.locate(found.into_iter().next().unwrap());
    assert!(
        error
            .to_string()
            .starts_with("/etc/weir/weir.toml:11: connection.shop.config.page.size = 100: "),
        "{error}"
    );
}

#[test]
fn a_reload_sees_what_changed_and_only_that() {
    let before = read(WHOLE).unwrap();
    let moved = read(&format!("\n\n# a note\n{WHOLE}")).unwrap();
    assert_eq!(before.host, moved.host);
    assert_eq!(before.connections, moved.connections);
    let after = read(&WHOLE.replace("\"5m\"", "\"6m\"")).unwrap();
    assert_ne!(before.connections["shop"], after.connections["shop"]);
    assert_eq!(before.connections["oss"], after.connections["oss"]);
}

proptest! {
    #[test]
    fn no_text_panics(text in "([a-z.=\\[\\]{}\" 0-9\n]|connection|host|sink|streams|auth|env){0,60}|.{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn no_value_panics(key in "data|timeout|outbox|workers|max_body", value in "\"[0-9a-zA-Z ]{0,8}\"|[0-9.+-]{1,25}|\\{\\}|\\[\\]|0x[0-9a-f]{1,20}") {
        let _ = read(&format!("[host]\n{key} = {value}"));
        let _ = read(&format!("[connection.a]\nconnector = \"x\"\nconfig.{key} = {value}\nstreams.s.interval = {value}"));
    }
}

#[test]
fn a_connectors_limits_are_read_and_held_to_their_bounds() {
    let config = read(
        "[connector.github]\nmemory = \"128MiB\"\ncall = \"2s\"\ndescribe = \"1s\"\nreturned = \"1MiB\"\n\
         file = \"64MiB\"\nlog = 5\n[connector.rest]\n",
    )
    .unwrap();
    let github = &config.connectors["github"];
    assert_eq!(
        (github.memory, github.returned, github.file, github.log),
        (128 << 20, 1 << 20, 64 << 20, 5)
    );
    assert_eq!(
        (github.call.as_millis(), github.describe.as_millis()),
        (2_000, 1_000)
    );
    assert_eq!(config.connectors["rest"], weir_runtime::Limits::default());
    for (wrong, help) in [
        ("memory = \"1MiB\"", "\"4MiB\" to \"256MiB\""),
        ("memory = \"1GiB\"", "\"4MiB\" to \"256MiB\""),
        ("call = \"10ms\"", "\"50ms\" to \"60s\""),
        ("describe = \"2m\"", "\"50ms\" to \"60s\""),
        ("returned = \"1KiB\"", "\"64KiB\" to \"64MiB\""),
        ("file = \"1GiB\"", "\"64KiB\" to \"256MiB\""),
        ("log = 100000", "from 0 to 10000"),
        ("memry = \"64MiB\"", "memory"),
    ] {
        let told = errors(&format!("[connector.github]\n{wrong}\n"));
        let key = wrong.split(' ').next().unwrap();
        assert!(told.contains("/etc/weir/weir.toml:2"), "{told}");
        assert!(told.contains(&format!("connector.github.{key}")), "{told}");
        assert!(told.contains(help), "{told}");
    }
}

#[test]
fn copies_are_configured_or_turned_off() {
    let copies = |text: &str| read(&format!("[host]\n{text}\n")).unwrap().host.copies;
    assert_eq!(copies(""), Some(CopySettings::default()));
    assert_eq!(copies("copies = false"), None);
    let every = CopySettings {
        every: 3_600_000,
        keep: 7,
    };
    assert_eq!(copies("copies = { every = \"1h\", keep = 7 }"), Some(every));
    for wrong in [
        "{ every = \"10ms\" }",
        "{ keep = 0 }",
        "{ keep = 101 }",
        "\"1d\"",
        "{ evry = \"1d\" }",
    ] {
        let told = errors(&format!("[host]\ncopies = {wrong}\n"));
        assert!(told.contains("host.copies"), "{told}");
    }
}
