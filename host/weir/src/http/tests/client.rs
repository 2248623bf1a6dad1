use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::AsyncWriteExt;

use super::{RawServer, Then, get, limits};
use crate::http::address::AddressPolicy;
use crate::http::client::HttpClient;
use crate::http::dns::Lookup;
use crate::http::{CallLimits, HttpRequest, HttpResponse, Transport, TransportError};

async fn answer_to(answer: impl Into<Vec<u8>>, then: Then) -> Result<HttpResponse, TransportError> {
    let server = RawServer::start(answer, then).await;
    HttpClient::new().send(get(&server.url("/v1/items"))).await
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn with_head(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}

#[tokio::test]
async fn a_whole_answer_comes_with_its_headers() {
    let answer = with_head("Content-Length: 2\r\nX-Total: 7\r\nETag: W/\"a,b\"", b"[]");
    let response = answer_to(answer, Then::Close).await.unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.text(), Some("[]"));
    assert_eq!(response.header("x-total"), Some("7"));
    assert_eq!(response.header("etag"), Some("W/\"a,b\""));
    assert_eq!(response.headers.len(), 2);
}

#[tokio::test]
async fn only_the_given_headers_and_the_encodings_are_sent() {
    let server = RawServer::start(with_head("Content-Length: 0", b""), Then::Close).await;
    let request = HttpRequest {
        headers: vec![("x-a".to_owned(), "1".to_owned())],
        secret_headers: vec![("authorization".to_owned(), "Bearer t".to_owned())],
        ..get(&server.url("/x?y=1"))
    };
    HttpClient::new().send(request).await.unwrap();
    let head = server.heads().concat().to_ascii_lowercase();
    assert!(head.starts_with("get /x?y=1 http/1.1\r\n"), "{head}");
    assert!(
        head.contains("x-a: 1\r\n") && head.contains("authorization: bearer t\r\n"),
        "{head}"
    );
    assert!(
        head.contains("accept-encoding: gzip, deflate\r\n"),
        "{head}"
    );
    assert!(
        !head.contains("cookie") && !head.contains("referer"),
        "{head}"
    );
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = RawServer::start(with_head("Content-Length: 2", b"[]"), Then::KeepOpen).await;
    let client = HttpClient::new();
    for _ in 0..3 {
        client.send(get(&server.url("/"))).await.unwrap();
    }
    assert_eq!(server.heads().len(), 3);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_redirect_is_an_answer_like_others() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let response = answer_to(answer, Then::Close).await.unwrap();
    assert_eq!(response.status, 302);
}

#[tokio::test]
async fn case_109_fewer_bytes_than_announced_are_a_broken_answer() {
    let short = with_head("Content-Length: 10000", b"[{\"id\":1},{\"id\":2}]");
    assert!(matches!(
        answer_to(short, Then::Close).await,
        Err(TransportError::Broken { .. })
    ));
    let chunked = with_head("Transfer-Encoding: chunked", b"2\r\n[]\r\n");
    assert!(matches!(
        answer_to(chunked, Then::Close).await,
        Err(TransportError::Broken { .. })
    ));
    let nothing = "";
    assert!(matches!(
        answer_to(nothing, Then::Close).await,
        Err(TransportError::Broken { .. })
    ));
    let no_http = "220 mail.example.test ESMTP\r\n\r\n";
    assert!(matches!(
        answer_to(no_http, Then::Close).await,
        Err(TransportError::Broken { .. })
    ));
}

#[tokio::test]
async fn case_111_gzip_cut_before_its_trailer_is_a_broken_answer() {
    let whole = gzip(b"[{\"id\":1}]");
    let head = "Content-Encoding: gzip\r\nConnection: close";
    let response = answer_to(with_head(head, &whole), Then::Close)
        .await
        .unwrap();
    assert_eq!(response.text(), Some("[{\"id\":1}]"));
    let cut = with_head(head, &whole[..whole.len() - 8]);
    assert!(matches!(
        answer_to(cut, Then::Close).await,
        Err(TransportError::Broken { .. })
    ));
}

#[tokio::test]
async fn case_113_text_comes_as_plain_utf_8() {
    let mark = with_head(
        "Content-Type: application/json\r\nContent-Length: 13",
        b"\xef\xbb\xbf[{\"id\":1}]",
    );
    assert_eq!(
        answer_to(mark, Then::Close).await.unwrap().text(),
        Some("[{\"id\":1}]")
    );
    let latin = with_head(
        "Content-Type: application/json; charset=iso-8859-1\r\nContent-Length: 6",
        b"\"caf\xe9\"",
    );
    assert_eq!(
        answer_to(latin, Then::Close).await.unwrap().text(),
        Some("\"café\"")
    );
    let bytes = with_head(
        "Content-Type: application/octet-stream\r\nContent-Length: 2",
        b"\xff\x00",
    );
    let response = answer_to(bytes, Then::Close).await.unwrap();
    assert_eq!(
        (response.text(), &response.body[..]),
        (None, &b"\xff\x00"[..])
    );
}

#[tokio::test]
async fn case_153_too_large_a_body_ends_early() {
    // The server would go on for ever, or has announced more than it will send: the client does not wait for it.
    let announced = with_head("Content-Length: 5000000000", b"[");
    let endless = with_head("Content-Type: application/json", b"[");
    let bomb = with_head("Content-Encoding: gzip", &gzip(&vec![b' '; 8 << 20]));
    for (answer, then) in [
        (announced, Then::Hang),
        (endless, Then::Repeat),
        (bomb, Then::Hang),
    ] {
        let told = answer_to(answer, then).await;
        assert!(
            matches!(
                told,
                Err(TransportError::TooLarge {
                    limit: 1_048_576,
                    ..
                })
            ),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_a_body_needs_no_encoding() {
    let server = RawServer::start(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5000000000\r\n\r\n",
        Then::Close,
    )
    .await;
    let head = HttpRequest {
        method: "HEAD",
        ..get(&server.url("/"))
    };
    assert!(HttpClient::new().send(head).await.unwrap().body.is_empty());
    let unchanged = "HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\n\r\n";
    assert_eq!(
        answer_to(unchanged, Then::KeepOpen).await.unwrap().status,
        304
    );
}

#[tokio::test]
async fn case_037_silence_ends_at_the_limits() {
    let server = RawServer::start("", Then::Hang).await;
    let short = Duration::from_millis(120);
    let request = HttpRequest {
        limits: CallLimits {
            total: short,
            ..limits()
        },
        ..get(&server.url("/?api_key=S3CR3T-9f2"))
    };
    let told = in_time(request).await;
    assert!(
        matches!(told, TransportError::Timeout { after, .. } if after == short),
        "{told}"
    );
    assert!(!format!("{told} {told:?}").contains("S3CR3T"));

    let half = RawServer::start(with_head("Content-Length: 10", b"[1,"), Then::Hang).await;
    let request = HttpRequest {
        limits: CallLimits {
            idle: short,
            ..limits()
        },
        ..get(&half.url("/"))
    };
    let told = in_time(request).await;
    assert!(
        matches!(told, TransportError::Timeout { after, .. } if after == short),
        "{told}"
    );
}

/// How the call fails, which must not take for ever.
async fn in_time(request: HttpRequest) -> TransportError {
    let client = HttpClient::new();
    let told = tokio::time::timeout(Duration::from_secs(20), client.send(request)).await;
    told.expect("no limit ends the call").unwrap_err()
}

#[tokio::test]
async fn case_135_no_error_shows_the_query() {
    // A port that was just free refuses.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let secret = "/v1/items?api_key=S3CR3T-9f2";
    let refused = HttpClient::new()
        .send(get(&format!("http://127.0.0.1:{port}{secret}")))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, TransportError::Connect { .. }),
        "{refused}"
    );
    let plain = RawServer::start("nonsense\r\n\r\n", Then::Close).await;
    let broken = HttpClient::new()
        .send(get(&plain.url(secret)))
        .await
        .unwrap_err();
    let tls = get(&format!("{}{secret}", speaks_no_tls().await));
    let no_tls = HttpClient::new().send(tls).await.unwrap_err();
    assert!(matches!(no_tls, TransportError::Connect { .. }), "{no_tls}");
    for error in [refused, broken, no_tls] {
        let text = format!("{error} {error:?}");
        assert!(text.contains("127.0.0.1:"), "{text}");
        assert!(
            !text.contains("S3CR3T") && !text.contains("api_key"),
            "{text}"
        );
    }
}

/// An https URL at which another protocol is spoken.
async fn speaks_no_tls() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"220 mail.example.test ESMTP\r\n").await;
        }
    });
    format!("https://127.0.0.1:{port}")
}

#[tokio::test]
async fn a_name_that_is_never_found_ends_at_the_connect_limit() {
    let lookup: Lookup = Arc::new(|_| Box::pin(std::future::pending()));
    let short = Duration::from_millis(120);
    let request = HttpRequest {
        limits: CallLimits {
            connect: short,
            ..limits()
        },
        ..get("http://api.example.test/?api_key=S3CR3T-9f2")
    };
    let told = HttpClient::with_lookup(lookup)
        .send(request)
        .await
        .unwrap_err();
    assert!(
        matches!(told, TransportError::Timeout { after, .. } if after == short),
        "{told}"
    );
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_told_without_the_query() {
    let lookup: Lookup =
        Arc::new(|_| Box::pin(async { Err(std::io::Error::other("no such name")) }));
    let told = HttpClient::with_lookup(lookup)
        .send(get("http://api.example.test/?api_key=S3CR3T-9f2"))
        .await
        .unwrap_err();
    assert!(matches!(told, TransportError::Connect { .. }), "{told}");
    let text = told.to_string();
    assert!(
        text.contains("api.example.test") && text.contains("no such name"),
        "{text}"
    );
    assert!(!text.contains("S3CR3T"), "{text}");
}

fn resolving_to(address: &'static str) -> HttpClient {
    let lookup: Lookup = Arc::new(move |_| {
        let found = address.split(' ').map(|one| one.parse().unwrap()).collect();
        Box::pin(async move { Ok(found) })
    });
    HttpClient::with_lookup(lookup)
}

#[tokio::test]
async fn a_name_that_leads_inwards_is_not_dialled() {
    let server = RawServer::start(with_head("Content-Length: 2", b"[]"), Then::Close).await;
    let url = format!(
        "http://api.example.test:{}/?api_key=S3CR3T-9f2",
        server.port
    );
    let public = HttpRequest {
        addresses: AddressPolicy::default(),
        ..get(&url)
    };
    for address in ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254 127.0.0.1"] {
        let told = resolving_to(address)
            .send(public.clone())
            .await
            .unwrap_err();
        assert!(matches!(told, TransportError::Refused { .. }), "{told}");
        assert!(!told.to_string().contains("S3CR3T"), "{told}");
    }
    assert_eq!(server.connections(), 0);
    // With the user's word it is, and only at the addresses that are allowed.
    let allowed = HttpRequest {
        addresses: AddressPolicy {
            loopback: false,
            private: true,
        },
        ..get(&url)
    };
    let response = resolving_to("169.254.169.254 127.0.0.1")
        .send(allowed)
        .await
        .unwrap();
    assert_eq!(response.text(), Some("[]"));
}

#[tokio::test]
async fn an_address_in_the_url_is_vetted_too() {
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:a00:1]/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://[::]/",
        "http://[::1]/",
        "http://[fe80::1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fd00::1]/",
        "https://10.0.0.1/",
    ] {
        let request = HttpRequest {
            addresses: AddressPolicy::default(),
            ..get(url)
        };
        let told = HttpClient::new().send(request).await.unwrap_err();
        assert!(
            matches!(told, TransportError::Refused { .. }),
            "{url}: {told}"
        );
    }
}

/// A name server that answers otherwise the second time: what was vetted is what is dialled, and each new connection is
/// vetted anew.
#[tokio::test]
async fn a_name_that_is_bound_anew_gains_nothing() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let server = RawServer::start(with_head("Content-Length: 2", b"[]"), Then::Close).await;
    let inner = RawServer::start(with_head("Content-Length: 2", b"{}"), Then::Close).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    // First where it may be, then inwards; all of it is this machine here.
    let lookup: Lookup = Arc::new(move |_| {
        let inwards = count.fetch_add(1, Ordering::SeqCst) > 0;
        let address = if inwards {
            "169.254.169.254"
        } else {
            "127.0.0.1"
        };
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    });
    let client = HttpClient::with_lookup(lookup);
    let request = |port: u16| HttpRequest {
        addresses: AddressPolicy {
            loopback: true,
            private: false,
        },
        ..get(&format!("http://api.example.test:{port}/"))
    };
    let response = client.send(request(server.port)).await.unwrap();
    assert_eq!(response.text(), Some("[]"));
    assert_eq!(
        asked.load(Ordering::SeqCst),
        1,
        "one look-up for one connection"
    );
    let told = client.send(request(inner.port)).await.unwrap_err();
    assert!(matches!(told, TransportError::Refused { .. }), "{told}");
    assert_eq!(inner.connections(), 0);
}
