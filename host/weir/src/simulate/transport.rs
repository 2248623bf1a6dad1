//! Calls to the simulated vendors: answered at the moment at which they arrive, seen by the host when they have
//! travelled.

use std::sync::Arc;
use std::time::Duration;

use weir_tests::answer::{SimAnswer, SimRequest, SimResponse};
use weir_tests::vendor::Vendor;

use super::run::Life;
use super::stage::{Counts, Stage};
use super::{Called, Moment};
use crate::clock::{BoxFuture, Clock as _};
use crate::http::{HttpRequest, HttpResponse, Transport, TransportError};

/// The network of one boot.
pub(super) struct SimTransport {
    pub(super) stage: Arc<Stage>,
    pub(super) life: Arc<Life>,
}

impl Transport for SimTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            // The dead call nobody, and time stands for whoever has lost their way.
            if self.life.is_over() || !self.stage.admit() {
                std::future::pending::<()>().await;
            }
            let host = request.url.host_str().unwrap_or_default().to_owned();
            let Some((number, vendor)) = self.vendor(request.url.path()) else {
                return Err(TransportError::Connect {
                    host,
                    detail: format!("no simulated vendor answers {}", request.url.path()),
                });
            };
            let now = self.stage.clock.now();
            let (answer, takes) = self.call(&request, number, vendor, now);
            if takes > Duration::ZERO {
                self.stage.clock.sleep(takes).await;
            }
            if self.life.is_over() {
                std::future::pending::<()>().await;
            }
            arrived(answer, takes, host, &request)
        })
    }
}

impl SimTransport {
    /// The vendor with the longest base that the path begins with.
    fn vendor(&self, path: &str) -> Option<(usize, &Vendor)> {
        let vendors = self.stage.vendors.iter().enumerate();
        vendors
            .filter(|(_, vendor)| {
                let rest = path.strip_prefix(vendor.spec().base.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
            .max_by_key(|(number, vendor)| (vendor.spec().base.len(), std::cmp::Reverse(*number)))
            .map(|(number, vendor)| (number, &**vendor))
    }

    /// What the vendor answers, and how long the host waits for it.
    fn call(
        &self,
        request: &HttpRequest,
        number: usize,
        vendor: &Vendor,
        at: Moment,
    ) -> (SimAnswer, Duration) {
        let mut sim = SimRequest::get(request.url.as_str());
        sim.method = request.method.to_owned();
        sim.headers = request
            .headers
            .iter()
            .chain(&request.secret_headers)
            .cloned()
            .collect();
        let served = vendor.serve(at.world, &sim);
        let total = request.limits.total;
        let takes = match &served.answer {
            SimAnswer::Response(response)
            | SimAnswer::Broken { response, .. }
            | SimAnswer::Huge { response, .. } => Duration::from_millis(response.latency_ms),
            SimAnswer::Reset { after_ms } => Duration::from_millis(*after_ms),
            SimAnswer::Hang => total,
        };
        let takes = takes.min(total);
        Counts::add(&self.stage.counts.calls, 1);
        let unit = request
            .unit
            .and_then(|id| Some((id, self.stage.file.key_of(id)?)));
        let takes_ms = u64::try_from(takes.as_millis()).unwrap_or(u64::MAX);
        self.stage.tell(|watch, _| {
            watch.called(&Called {
                at,
                answered: at.world.saturating_add_unsigned(takes_ms),
                unit: unit.as_ref().map(|(id, key)| (*id, &**key)),
                vendor: number,
                request: &sim,
                served: &served,
            })
        });
        (served.answer, takes)
    }
}

/// What the host sees.
fn arrived(
    answer: SimAnswer,
    takes: Duration,
    host: String,
    request: &HttpRequest,
) -> Result<HttpResponse, TransportError> {
    let limit = request.limits.body;
    if takes >= request.limits.total {
        return Err(TransportError::Timeout {
            host,
            after: request.limits.total,
        });
    }
    let broken = |host, detail: &str| TransportError::Broken {
        host,
        detail: detail.to_owned(),
    };
    match answer {
        SimAnswer::Response(response) => {
            let body = response
                .decoded()
                .map_err(|error| broken(host.clone(), &error.to_string()))?;
            if body.len() > limit {
                return Err(TransportError::TooLarge { host, limit });
            }
            let SimResponse {
                status, headers, ..
            } = response;
            Ok(HttpResponse {
                status,
                headers,
                body,
                elapsed: takes,
            })
        }
        SimAnswer::Huge { bytes, .. } if bytes > limit as u64 => {
            Err(TransportError::TooLarge { host, limit })
        }
        SimAnswer::Huge { response, bytes } => {
            let mut body = response.body.to_vec();
            body.resize(usize::try_from(bytes).unwrap_or(limit), b' ');
            Ok(HttpResponse {
                status: response.status,
                headers: response.headers,
                body: body.into(),
                elapsed: takes,
            })
        }
        SimAnswer::Broken { .. } => Err(broken(host, "the body ended early")),
        SimAnswer::Reset { .. } => Err(broken(host, "connection reset")),
        SimAnswer::Hang => Err(TransportError::Timeout {
            host,
            after: request.limits.total,
        }),
    }
}
