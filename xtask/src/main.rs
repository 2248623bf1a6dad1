//! The README's commands: one file per subcommand, and what they share.

mod bench;
mod build;
mod cargo;
mod conformance;
mod connectors;
mod crash;
mod demo;
mod docs;
mod policy;
mod product;
mod reference;
mod rounds;
mod simulation;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, tries, tests and measures weir.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the host, and all connectors into dist/connectors
    Build(build::Args),
    /// Poll three simulated vendors with the real binary, kill it on the way, and count what was lost
    Demo(demo::Args),
    /// Measure weir beside loops that are written by hand
    Bench(bench::Args),
    /// Kill the real binary again and again at random instants, and count what was lost
    Crash(crash::Args),
    /// Measure what others have published of their way of polling, and show theirs beside ours
    Reference(reference::Args),
    /// Check formatting and lints, and run all tests
    Test(test::Args),
    /// Check the licences and the sources of all crates, without a network
    Policy,
    /// Feed recorded answers of real vendors to the connectors, and print what each made of them
    Conformance(conformance::Args),
    /// Write the connectors' pages in docs/connectors
    Docs(docs::Args),
    /// Run seed after seed of the simulation, until a promise is broken or the time is over
    Soak(simulation::SoakArgs),
    /// Load, poll and drop a connector thousands of times, and see that nothing grows
    Rounds(rounds::Args),
    /// Break rules on purpose, and see whether the simulation finds each
    Planted(simulation::PlantedArgs),
    #[command(hide = true)]
    BenchServer(bench::server::Args),
    #[command(hide = true)]
    BenchFloor(bench::floors::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Build(args) => build::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Crash(args) => crash::run(&args),
        Command::Reference(args) => reference::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Policy => policy::check(),
        Command::Conformance(args) => conformance::run(&args),
        Command::Docs(args) => docs::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Soak(args) => simulation::soak(&args),
        Command::Rounds(args) => rounds::run(&args),
        Command::Planted(args) => simulation::planted(&args),
        Command::BenchServer(args) => bench::server::run(&args),
        Command::BenchFloor(args) => bench::floors::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Without the backtrace that `RUST_BACKTRACE` would add: the message says what to do.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
