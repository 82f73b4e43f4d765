//! Hands over to the library.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Most of a request's work is small pieces of JSON.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    colloquy::run()
}
