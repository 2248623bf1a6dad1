//! A call with a credential that may be renewed on the way: before it when its token runs out, and once after the vendor
//! has refused it.

use weir_rules::model::Class;
use weir_runtime::contract::Request;

use super::call::{Answered, Call, CallFailed, Read, permanent};
use super::run::{FaultSeen, Poll};
use crate::oauth::Trouble;

impl Poll<'_> {
    /// Makes the call and reads the answer.
    pub(super) async fn call(
        &mut self,
        step: Option<&str>,
        request: Request,
    ) -> Result<Call, CallFailed> {
        let connection = self.connection.clone();
        let Some(place) = connection.origins.get(&request.origin) else {
            return Err(CallFailed::Fault(permanent(
                "origin",
                format!(
                    "the connector asks for origin {:?}, which it does not declare",
                    request.origin
                ),
            )));
        };
        let credential = match place.credential.current().await {
            Ok(credential) => credential,
            Err(trouble) => return Ok(self.without_token(trouble, Answered::none())),
        };
        self.alive();
        let call = self
            .call_as(step, &request, &place.origin, &credential)
            .await?;
        if !is_expired(&call) {
            return Ok(call);
        }
        let renewed = match place.credential.after(&credential).await {
            Ok(Some(renewed)) => renewed,
            Ok(None) => return Ok(call),
            Err(trouble) => return Ok(self.without_token(trouble, call.seen)),
        };
        self.alive();
        let mut again = self
            .call_as(step, &request, &place.origin, &renewed)
            .await?;
        again.seen.add(call.seen);
        // A token that is refused when it is new is not renewed again: the next decision is a person's.
        self.state.faults.refreshed = is_expired(&again);
        Ok(again)
    }

    fn without_token(&self, trouble: Trouble, seen: Answered) -> Call {
        let Trouble { fault, wait } = trouble;
        let met = FaultSeen {
            wait,
            ..FaultSeen::of(self.masked(fault))
        };
        Call {
            read: Read::Fault(Box::new(met)),
            seen,
        }
    }

    /// A renewal takes time too.
    fn alive(&self) {
        let now = self.host.clock.monotonic();
        self.host.scheduler.heartbeat(&self.job, now);
    }
}

fn is_expired(call: &Call) -> bool {
    matches!(&call.read, Read::Fault(met) if met.fault.class == Class::AuthExpired)
}
