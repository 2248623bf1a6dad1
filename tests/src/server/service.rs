//! From hyper's requests to the vendors, and back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::body::SimBody;
use super::{Line, Stage, control};
use crate::answer::{SimAnswer, SimRequest, SimResponse};

/// Who answers which path.
pub(super) struct Reception {
    pub(super) stage: Stage,
}

impl Reception {
    pub(super) fn new(mut stage: Stage) -> Self {
        // The longest base first: `/acme/eu` before `/acme`.
        stage
            .vendors
            .sort_by_key(|vendor| std::cmp::Reverse(vendor.spec().base.len()));
        Reception { stage }
    }

    fn vendor(&self, path: &str) -> Option<&Arc<crate::vendor::Vendor>> {
        self.stage
            .vendors
            .iter()
            .find(|vendor| path.starts_with(vendor.spec().base.as_str()))
    }
}

/// Answers one request. An error breaks the connection.
pub(super) async fn answer(
    reception: Arc<Reception>,
    line: Arc<Line>,
    request: Request<Incoming>,
) -> io::Result<Response<SimBody>> {
    let path = request.uri().path();
    if path.starts_with("/_sim/") {
        return control::answer(&reception.stage, &request);
    }
    if let Some(bulk) = reception
        .stage
        .bulks
        .iter()
        .find(|bulk| bulk.path() == path)
    {
        let pieces = bulk.page(request.uri().query().unwrap_or_default());
        return response(StatusCode::OK, "application/json", SimBody::whole(pieces));
    }
    let Some(vendor) = reception.vendor(path) else {
        return response(
            StatusCode::NOT_FOUND,
            "text/plain",
            text("no vendor has this path"),
        );
    };
    let answer = vendor.handle((reception.stage.clock)(), &read(&request));
    match answer {
        SimAnswer::Response(response) => {
            let body = SimBody::whole([response.body.clone()]);
            send(response, body).await
        }
        SimAnswer::Broken { response, sent } => {
            let body = SimBody::broken(&response.body, sent);
            send(response, body).await
        }
        SimAnswer::Huge { response, bytes } => {
            let body = SimBody::huge(response.body.clone(), bytes);
            send(response, body).await
        }
        SimAnswer::Reset { after_ms } => {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            line.will_reset();
            Err(io::Error::other("the vendor resets the connection"))
        }
        SimAnswer::Hang => std::future::pending().await,
    }
}

fn read(request: &Request<Incoming>) -> SimRequest {
    let header = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let host = request
        .headers()
        .get("host")
        .map(header)
        .unwrap_or_default();
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    SimRequest {
        method: request.method().to_string(),
        headers: request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), header(value)))
            .collect(),
        ..SimRequest::get(&format!("http://{host}{target}"))
    }
}

async fn send(answer: SimResponse, body: SimBody) -> io::Result<Response<SimBody>> {
    if answer.latency_ms > 0 {
        tokio::time::sleep(Duration::from_millis(answer.latency_ms)).await;
    }
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).map_err(io::Error::other)?;
    for (name, value) in &answer.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(io::Error::other)?;
        let value = HeaderValue::try_from(value.as_str()).map_err(io::Error::other)?;
        response.headers_mut().append(name, value);
    }
    Ok(response)
}

pub(super) fn text(text: &str) -> SimBody {
    SimBody::whole([Bytes::copy_from_slice(text.as_bytes())])
}

pub(super) fn response(
    status: StatusCode,
    content_type: &'static str,
    body: SimBody,
) -> io::Result<Response<SimBody>> {
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(body)
        .map_err(io::Error::other)
}
