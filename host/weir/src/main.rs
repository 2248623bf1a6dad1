//! The weir binary.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use weir::cli::{self, Cli};

/// Threads for network and store. Connectors compute on threads of their own.
const THREADS: usize = 4;

fn main() -> ExitCode {
    // Wrong use ends the process here, with clap's own message and code.
    let cli = Cli::parse();
    match runtime() {
        Ok(runtime) => {
            let exit = runtime.block_on(cli::main(cli));
            // Nothing that matters is left: a read of a file or of a name must not hold up the end.
            runtime.shutdown_background();
            exit
        }
        Err(error) => {
            eprintln!("weir: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(THREADS));
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("could not start")
}
