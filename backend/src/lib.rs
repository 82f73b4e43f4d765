//! The Colloquy server.
//!
//! The house, by capability; each module says what it owns and where it stops:
//!
//! - [`app`]: what every part shares: configuration, store, providers, clock
//! - [`config`]: settings from defaults, a TOML file and the environment
//! - [`clock`]: the only source of time and identifiers
//! - [`cli`]: the commands of the binary
//! - [`start`]: what runs in a server, and in which order it starts and stops
//! - [`observability`]: logs and metrics
//! - [`money`]: amounts of US dollars
//! - [`cache`]: a small map whose entries are short-lived
//! - [`http`]: the list of routes, errors, extractors, limits, the OpenAPI document
//! - [`accounts`]: partners, their API keys, their quotas and the ledger
//! - [`characters`]: saved and inline characters, prompt templates
//! - [`calls`]: the call resource, signed URLs, transcripts, completion
//! - [`media`]: the driver between sockets, WebRTC and the conversation engine
//! - [`generation`]: text generation: replies of models, as characters with knowledge, for clients and for calls
//! - [`knowledge`]: what a character can look up
//! - [`speech`]: the voice of a character
//! - [`messaging`]: legacy conversations of text and voice messages, answered in the background
//! - [`providers`]: one trait per outside service, its adapters and its embedded default
//! - [`node`]: this process among the nodes of the installation
//! - [`jobs`]: durable background work
//! - [`webhooks`]: the outbox and its delivery
//! - [`fetch`]: the guarded client for addresses that partners name
//! - [`store`]: the database connection and its migrations
//!
//! A capability reaches another only through what that one's `mod.rs` exports.

pub mod accounts;
pub mod app;
pub mod cache;
pub mod calls;
pub mod characters;
pub mod cli;
pub mod clock;
pub mod config;
pub mod fetch;
#[cfg(test)]
mod fuzz;
pub mod generation;
pub mod http;
pub mod jobs;
pub mod knowledge;
pub mod media;
pub mod messaging;
pub mod money;
pub mod node;
pub mod observability;
pub mod providers;
pub mod speech;
pub mod start;
pub mod store;
pub mod webhooks;

pub use app::App;
pub use cli::Cli;
pub use config::Config;

/// Runs one command of the binary to its end.
///
/// # Errors
/// What a person at the terminal can act on: a bad setting, a database that does not answer, an unknown partner.
pub async fn run(cli: Cli) -> anyhow::Result<()> {
    cli::run(cli).await
}
