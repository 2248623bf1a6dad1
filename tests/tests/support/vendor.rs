//! A simulated vendor behind the transport seam.

use std::sync::Arc;
use std::time::Duration;

use weir::clock::BoxFuture;
use weir::http::{HttpRequest, HttpResponse, Transport, TransportError};
use weir_tests::answer::{SimAnswer, SimRequest, SimResponse};
use weir_tests::vendor::Vendor;

use super::clock::TestClock;

/// Vendors by the first part of the path, as the loopback server has them.
pub struct Vendors {
    pub clock: Arc<TestClock>,
    pub vendors: Vec<(String, Arc<Vendor>)>,
}

impl Transport for Vendors {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let answer = self.answer(&request);
        let clock = self.clock.clone();
        Box::pin(async move {
            let broken = |detail: &str| TransportError::Broken {
                host: host.clone(),
                detail: detail.to_owned(),
            };
            match answer {
                SimAnswer::Response(response) => {
                    clock.advance(i64::try_from(response.latency_ms).unwrap_or(0));
                    whole(response).map_err(|error| broken(&error.to_string()))
                }
                SimAnswer::Broken { .. } => Err(broken("the body ended early")),
                SimAnswer::Huge { .. } => Err(TransportError::TooLarge {
                    host,
                    limit: request.limits.body,
                }),
                SimAnswer::Reset { after_ms } => {
                    clock.advance(i64::try_from(after_ms).unwrap_or(0));
                    Err(broken("connection reset"))
                }
                SimAnswer::Hang => {
                    let total = request.limits.total;
                    clock.advance(i64::try_from(total.as_millis()).unwrap_or(0));
                    Err(TransportError::Timeout { host, after: total })
                }
            }
        })
    }
}

impl Vendors {
    fn answer(&self, request: &HttpRequest) -> SimAnswer {
        let mut sim = SimRequest::get(request.url.as_str());
        sim.method = request.method.to_owned();
        for (name, value) in request.headers.iter().chain(&request.secret_headers) {
            sim = sim.with(name, value);
        }
        let name = sim.path.split('/').nth(1).unwrap_or_default().to_owned();
        let vendor = self.vendors.iter().find(|(known, _)| *known == name);
        let (_, vendor) = vendor.unwrap_or_else(|| panic!("no vendor {name}"));
        vendor.handle(self.clock.wall_now(), &sim)
    }
}

fn whole(response: SimResponse) -> std::io::Result<HttpResponse> {
    Ok(HttpResponse {
        status: response.status,
        headers: response.headers.clone(),
        body: response.decoded()?,
        elapsed: Duration::from_millis(response.latency_ms),
    })
}
