//! Where the browser brings the vendor's answer: a loopback address that takes one answer and closes.
//!
//! Refuses: whatever does not carry the state of this sign-in, every path but its own, and a second answer. A page that
//! a stranger makes the browser load here changes nothing.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::{Host, Url, form_urlencoded};

use super::LoginError;

/// Connections that are open at once.
const GUESTS: usize = 16;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the page that thanks the person may take to reach the browser.
const FAREWELL: Duration = Duration::from_secs(2);

/// A code, or why there is none.
type Outcome = Result<String, LoginError>;

/// Waits for the answer.
pub(super) struct Door {
    listener: TcpListener,
    redirect: Url,
}

/// What a guest must know, and where its answer goes.
struct Expected {
    path: String,
    state: String,
    outcome: mpsc::Sender<Outcome>,
}

impl Door {
    /// Listens where the app's redirect leads, or on a free port.
    pub(super) async fn open(wanted: Option<&Url>) -> Result<Door, LoginError> {
        let default = || Url::parse("http://127.0.0.1:0/callback");
        let mut redirect = match wanted {
            Some(url) => url.clone(),
            None => default().map_err(|error| LoginError::Listen {
                address: "127.0.0.1".to_owned(),
                source: std::io::Error::other(error),
            })?,
        };
        let ip: IpAddr = match redirect.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        // The port of a URL without one is 80, which is none to be had; a redirect without a port leaves it to us.
        let address = SocketAddr::new(ip, redirect.port().unwrap_or(0));
        let failed = |source| LoginError::Listen {
            address: address.to_string(),
            source,
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        redirect
            .set_port(Some(port))
            .map_err(|()| failed(std::io::ErrorKind::InvalidInput.into()))?;
        Ok(Door { listener, redirect })
    }

    /// Where the vendor is to send the browser.
    pub(super) fn redirect(&self) -> &Url {
        &self.redirect
    }

    /// The code that comes with this state.
    pub(super) async fn answer(self, state: &str) -> Outcome {
        let (outcome, mut outcomes) = mpsc::channel(1);
        let expected = Arc::new(Expected {
            path: self.redirect.path().to_owned(),
            state: state.to_owned(),
            outcome,
        });
        let mut guests = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(outcome) = outcomes.recv() => {
                    // The browser still reads the page.
                    let gone = async { while guests.join_next().await.is_some() {} };
                    let _ = tokio::time::timeout(FAREWELL, gone).await;
                    return outcome;
                }
                Some(_) = guests.join_next() => {}
                accepted = self.listener.accept(), if guests.len() < GUESTS => match accepted {
                    Ok((stream, _)) => {
                        guests.spawn(welcome(stream, expected.clone()));
                    }
                    // Out of file handles, mostly: a pause lets some go.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
            }
        }
    }
}

async fn welcome(stream: TcpStream, expected: Arc<Expected>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (status, text) = expected.hear(&request);
        let page = format!(
            "<!doctype html><meta charset=utf-8><title>weir</title><p style=\"font:1.2em sans-serif\">{text}\n"
        );
        let response = Response::builder()
            .status(status)
            .header("content-type", "text/html; charset=utf-8")
            .header("cache-control", "no-store")
            .header("referrer-policy", "no-referrer")
            .body(page);
        async { Ok::<_, Infallible>(response.unwrap_or_default()) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A guest that breaks off or dawdles concerns nobody else.
    let _ = tokio::time::timeout(PATIENCE, connection).await;
}

impl Expected {
    fn hear(&self, request: &Request<Incoming>) -> (StatusCode, &'static str) {
        if request.method() != Method::GET || request.uri().path() != self.path {
            return (StatusCode::NOT_FOUND, "There is nothing here.");
        }
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            form_urlencoded::parse(query.as_bytes())
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.into_owned())
                .filter(|value| !value.is_empty())
        };
        if value("state").as_deref() != Some(self.state.as_str()) {
            return (
                StatusCode::BAD_REQUEST,
                "This does not belong to the sign-in that weir waits for.",
            );
        }
        let outcome = match (value("error"), value("code")) {
            (Some(error), _) => Err(LoginError::Denied(denial(
                error,
                value("error_description"),
            ))),
            (None, Some(code)) => Ok(code),
            (None, None) => return (StatusCode::BAD_REQUEST, "This brings no code."),
        };
        let text = match outcome {
            Ok(_) => "weir has the answer. You can close this page.",
            Err(_) => "The sign-in was refused. The terminal says more.",
        };
        match self.outcome.try_send(outcome) {
            Ok(()) => (StatusCode::OK, text),
            Err(_) => (StatusCode::CONFLICT, "weir has had its answer already."),
        }
    }
}

/// The vendor's words, fit for one line.
fn denial(error: String, description: Option<String>) -> String {
    let text = match description {
        Some(description) => format!("{error}: {description}"),
        None => error,
    };
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).take(300).collect()
}
