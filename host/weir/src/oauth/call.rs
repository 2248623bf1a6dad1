//! One call to a token endpoint.
//!
//! It goes the way of every call: https or loopback, vetted addresses, limits. Nothing that it sends stands in a URL, and
//! a redirect is an answer like any other, not followed.

use url::form_urlencoded;

use super::Io;
use super::client::{Client, Endpoint};
use crate::http::{HttpRequest, HttpResponse, TransportError};

/// Posts a form. The client proves itself in a header, or in the form by [`Client::identify`].
pub(super) async fn post(
    io: &Io,
    client: &Client,
    to: &Endpoint,
    form: &[(&str, &str)],
) -> Result<HttpResponse, TransportError> {
    let mut whole = form.to_vec();
    client.identify(&mut whole);
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(whole)
        .finish();
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let basic = client.basic();
    let request = HttpRequest {
        method: "POST",
        url: to.url.clone(),
        headers: vec![
            header("accept", "application/json"),
            header("content-type", "application/x-www-form-urlencoded"),
            header("user-agent", &io.user_agent),
        ],
        secret_headers: basic
            .map(|pair| header("authorization", &format!("Basic {pair}")))
            .into_iter()
            .collect(),
        body: Some(body.into()),
        addresses: to.addresses,
        limits: io.limits,
        unit: None,
    };
    io.transport.send(request).await
}
