//! Names to vetted addresses: what is dialled is what was checked, so a name server that changes its answer between
//! the check and the call gains nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::{AddressPolicy, address_allowed};
use crate::clock::BoxFuture;

/// How a name is looked up; the system's resolver unless a test says otherwise.
pub(super) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Asks the system.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Every address that a name has was refused.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {reason}")]
pub(super) struct Refusal {
    address: IpAddr,
    reason: &'static str,
}

/// A resolver that hands out allowed addresses only.
pub(super) struct VettedResolver {
    pub(super) lookup: Lookup,
    pub(super) policy: AddressPolicy,
}

impl Resolve for VettedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let found = (self.lookup)(name.as_str().to_owned());
        let policy = self.policy;
        Box::pin(async move {
            let allowed = vet(found.await?, policy)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The allowed ones of some addresses; an error when none is.
pub(super) fn vet(found: Vec<IpAddr>, policy: AddressPolicy) -> Result<Vec<SocketAddr>, Refusal> {
    let mut refusal = None;
    let allowed: Vec<SocketAddr> = found
        .into_iter()
        .filter(|address| match address_allowed(*address, policy) {
            Ok(()) => true,
            Err(reason) => {
                refusal.get_or_insert(Refusal {
                    address: *address,
                    reason,
                });
                false
            }
        })
        // Port 0 stands for the URL's own.
        .map(|address| SocketAddr::new(address, 0))
        .collect();
    match refusal {
        Some(refusal) if allowed.is_empty() => Err(refusal),
        _ => Ok(allowed),
    }
}
