//! The benchmarks: `tests/bench NAME [--json]`.

mod call;
mod consoles;
mod converse;
mod extract;
mod figures;
mod lists;
mod progress;
mod recordings;
mod retrieve;
mod server;
mod setup;
mod speech;
mod text;
mod transcribe;
mod turns;

use std::{fmt::Display, io::Write as _, process::ExitCode};

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
    /// Consoles that are open and that nobody uses: processor and memory of their event streams.
    Consoles(consoles::ConsolesOptions),
    /// Conversations with the embedded answerer: how many answers are acceptable, wrong or rightly declined.
    Converse(converse::ConverseOptions),
    /// Documents made Markdown: how much of their text is there, how fast, and in how much memory.
    Extract(extract::ExtractOptions),
    /// Lists of the console over a large database: how long each request takes.
    Lists(lists::ListsOptions),
    /// Setting calls up on networks that lose datagrams: how many fail, and how long it takes.
    Setup(setup::SetupOptions),
    /// Ears and voice of a server with nothing but its defaults, beside the programs that are used without models.
    Speech(speech::SpeechOptions),
    /// When turns end: cut-ins, missed turns and waiting, for each way of telling.
    Turns(turns::TurnsOptions),
    /// Finding passages: how good rankings are, and how long a search takes over many chunks.
    Retrieve(retrieve::RetrieveOptions),
    /// Transcripts of long recordings: how good they are beside those of short ones, and how long they take.
    Transcribe(transcribe::TranscribeOptions),
    /// Text generation: what the server adds to its upstream, with one client and with many.
    Text(text::TextOptions),
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<ExitCode> {
    colloquy::server::install_tls_provider();
    let mut code = ExitCode::SUCCESS;
    let report: Box<dyn Display> = match Cli::parse().benchmark {
        Benchmark::Call(options) => Box::new(call::run(options).await?),
        Benchmark::Consoles(options) => {
            let report = consoles::run(options).await?;
            code = report.exit_code();
            Box::new(report)
        }
        Benchmark::Converse(options) => {
            let report = converse::run(options).await?;
            code = report.exit_code();
            Box::new(report)
        }
        Benchmark::Extract(options) => Box::new(extract::run(options).await?),
        Benchmark::Lists(options) => {
            let report = lists::run(options).await?;
            code = report.exit_code();
            Box::new(report)
        }
        Benchmark::Setup(options) => Box::new(setup::run(options).await?),
        Benchmark::Speech(options) => Box::new(speech::run(options).await?),
        Benchmark::Turns(options) => Box::new(turns::run(options).await?),
        Benchmark::Retrieve(options) => Box::new(retrieve::run(options).await?),
        Benchmark::Transcribe(options) => Box::new(transcribe::run(options).await?),
        Benchmark::Text(options) => Box::new(text::run(options).await?),
    };
    writeln!(std::io::stdout().lock(), "{report}")?;
    Ok(code)
}
