//! The benchmarks: `tests/bench NAME [--json]`.

mod call;

use std::io::Write as _;

use clap::{Parser, Subcommand};

/// Measures Colloquy on this machine.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Voice calls: latencies, processor and memory, with several calls at once.
    Call(call::CallOptions),
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    colloquy::start::install_tls_provider();
    let report = match Cli::parse().benchmark {
        Benchmark::Call(options) => call::run(options).await?,
    };
    writeln!(std::io::stdout().lock(), "{report}")?;
    Ok(())
}
