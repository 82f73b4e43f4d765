//! Reads the arguments and hands over to the library.

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;

/// Most of a request's work is small pieces of JSON.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = colloquy::Cli::parse();
    if let Some(decoded) = colloquy::decode(&cli) {
        return decoded.unwrap_or_else(|error| fail(&error));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(colloquy::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the last word of a failed command, also before logs are set up"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("colloquy: {error:#}");
    ExitCode::FAILURE
}
