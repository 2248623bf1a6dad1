//! `weir run`: the host, until it is told to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use tokio::sync::mpsc;

use super::ask::open;
use super::{CliError, Common, setting};
use crate::catalogue::{self, Changes};
use crate::control;
use crate::copies;
use crate::deliveries::Deliveries;
use crate::host::{DRAIN, Host};
use crate::secret_files;
use crate::status;
use crate::stop::{self, Stop};

/// `weir run`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir run --log-format json\n\
    SIGTERM or Ctrl-C: calls in flight end, what they brought is stored and delivered. A second one ends at once.")]
pub struct Run {}

impl Run {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let config = setting::load(common)?;
        setting::warn(&config);
        let stop = Stop::default();
        stop::on_signals(stop.clone()).map_err(|source| CliError::Io {
            what: "signals",
            source,
        })?;
        let host = open(config, stop).await?;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            data = %host.config.host.data.display(),
            connectors = %host.config.host.connectors.display(),
            "weir runs"
        );
        let deliveries = Deliveries::start(&host).await?;
        let control = tokio::spawn(listen(host.clone()));
        let metrics = host
            .config
            .host
            .metrics
            .map(|address| tokio::spawn(serve_metrics(host.clone(), address)));
        host.prepare(true).await?;
        if host.config.connections.is_empty() {
            tracing::warn!("no connection is configured: nothing is polled");
        }
        let reload = tokio::spawn(reload(host.clone()));
        let secrets = tokio::spawn(secret_files::watch(host.clone()));
        let copies = tokio::spawn(copies::run(host.clone()));
        host.run().await;
        reload.abort();
        secrets.abort();
        // It gives up what it has begun; a panic of it is in the log.
        let _ = copies.await;
        deliveries.finish(&host, DRAIN).await;
        // It ends with the host; a panic of it is in the log.
        let _ = control.await;
        if let Some(metrics) = metrics {
            metrics.abort();
        }
        tracing::info!("weir has ended");
        Ok(0)
    }
}

async fn listen(host: Arc<Host>) {
    let data = host.config.host.data.clone();
    if let Err(error) = control::serve(host, &data).await {
        tracing::error!(
            socket = %control::socket_path(&data).display(), %error,
            "the control socket does not work: polling goes on, other weir commands can't ask this one"
        );
    }
}

async fn serve_metrics(host: Arc<Host>, address: SocketAddr) {
    if let Err(error) = status::listen(host, address).await {
        tracing::error!(
            %address, %error,
            "no metrics are served there: polling goes on, the control socket has them too; see host.metrics"
        );
    }
}

/// Makes the connections of changed connectors ready anew, for as long as the host runs.
async fn reload(host: Arc<Host>) {
    let (sender, mut changes) = mpsc::channel::<Changes>(4);
    let watch = tokio::spawn(catalogue::watch(host.catalogue.clone(), sender));
    while let Some(changed) = changes.recv().await {
        for connector in &changed.connectors {
            match host.catalogue.get(connector) {
                Some(now) => tracing::info!(
                    connector, version = now.descriptor().version, sha256 = %now.digest(),
                    "connector loaded"
                ),
                None => tracing::warn!(
                    connector,
                    "connector removed: its connections rest, their state stays"
                ),
            }
        }
        let concerned: Vec<String> = host
            .config
            .connections
            .iter()
            .filter(|(_, settings)| changed.connectors.contains(&settings.connector))
            .map(|(name, _)| name.clone())
            .collect();
        for name in concerned {
            if let Err(error) = host.prepare_connection(&name, true).await {
                tracing::error!(connection = name, %error, "the connection could not be made ready");
            }
        }
    }
    watch.abort();
}
