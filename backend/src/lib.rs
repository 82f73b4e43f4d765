//! The Colloquy server.
//!
//! The house, by capability; each module says what it owns and where it stops:
//!
//! - [`app`]: the state of the server: that of each capability
//! - [`cli`]: the commands of the binary
//! - [`server`]: the list of capabilities, their routes, the OpenAPI document, how a server starts and stops
//!
//! Each capability is a crate. Here they stand under the names in brackets, each above those it knows:
//!
//! - `colloquy-media` ([`media`]): the driver between the transport, the conversation engine and the client's socket
//! - `colloquy-messaging` ([`messaging`]): legacy conversations of text and voice messages, answered in the background
//! - `colloquy-transcripts` ([`transcripts`]): recordings written down, in the background
//! - `colloquy-analyses` ([`analyses`]): what conversations tell of a person, found out in the background
//! - `colloquy-calls` ([`calls`]): the call resource, signed URLs, transcripts, completion
//! - `colloquy-generation` ([`generation`]): text generation: replies of models, as characters with knowledge, for clients and
//!   for calls
//! - `colloquy-speech` ([`speech`]): the voice of a character
//! - `colloquy-webhooks` ([`webhooks`]): the outbox and its delivery
//! - `colloquy-events` ([`events`]): the changes of resources as streams of server-sent events
//! - `colloquy-audit` ([`audit`]): who changed what, and when
//! - `colloquy-console` ([`console`]): the web interface of operators, and the sessions of those who signed in
//! - `colloquy-characters` ([`characters`]): saved and inline characters, prompt templates
//! - `colloquy-accounts` ([`accounts`]): partners, their API keys, their quotas and the ledger
//!
//! What they stand on:
//!
//! - `colloquy-base`: [`clock`], the only source of time and identifiers; [`identifiers`] of partners and characters; [`money`],
//!   amounts of US dollars; [`invalid`], what is wrong with something given; [`language`], languages by name and tag; [`cache`],
//!   a small map whose entries are short-lived; [`fair_queue`], slots that many share, in a fair order; `counts`, how much each of
//!   many has of something that is bounded; `json` from outside, with a bound on the memory that it becomes
//! - `colloquy-store` ([`store`]): the database, its connections, transactions and migrations
//! - `colloquy-config` ([`config`]): settings from defaults, a TOML file and the environment
//! - `colloquy-observability` ([`observability`]): logs, metrics and traces
//! - `colloquy-http` ([`http`]): connections, interfaces, errors, extractors, limits
//! - `colloquy-kernel` ([`kernel`]): what every capability stands on: this process among the nodes ([`node`]), durable background
//!   work ([`jobs`]), the end of work that must not be lost ([`journal`]), and what a capability brings along
//! - `colloquy-fetch` ([`fetch`]): the guarded client for addresses that partners name
//! - `colloquy-sandbox` ([`sandbox`]): decoding what is not trusted, in a child process
//! - `colloquy-digitize` ([`digitize`]): documents of others, made text by children of the sandbox
//! - `colloquy-extract`: the bytes of a document in, Markdown out
//! - `colloquy-knowledge` ([`knowledge`]): what a character can look up
//! - `colloquy-providers` ([`providers`]): one trait per outside service, its adapters and its embedded default
//! - `colloquy-formats`: the formats of text generation
//! - `colloquy-audio`: sound as files and as samples
//! - `colloquy-transport`: the UDP port, ICE, DTLS and WebRTC of calls
//! - `colloquy-voice`: the conversation engine
//!
//! A capability reaches another only through what that one's root exports.

// How deep the compiler follows futures inside of futures; a request goes through some fifteen. An optimized build needs it.
#![recursion_limit = "256"]

pub mod app;
pub mod cli;
pub mod server;

pub use app::App;
pub use cli::Cli;
pub use colloquy_accounts as accounts;
pub use colloquy_analyses as analyses;
pub use colloquy_audit as audit;
pub use colloquy_base::{cache, clock, fair_queue, identifiers, invalid, language, money};
pub use colloquy_bases as bases;
pub use colloquy_blobs as blobs;
pub use colloquy_calls as calls;
pub use colloquy_characters as characters;
pub use colloquy_config as config;
pub use colloquy_console as console;
pub use colloquy_digitize as digitize;
pub use colloquy_events as events;
pub use colloquy_fetch as fetch;
pub use colloquy_generation as generation;
pub use colloquy_http as http;
pub use colloquy_kernel as kernel;
pub use colloquy_kernel::{jobs, journal, node};
pub use colloquy_knowledge as knowledge;
pub use colloquy_media as media;
pub use colloquy_messaging as messaging;
pub use colloquy_observability as observability;
pub use colloquy_providers as providers;
pub use colloquy_sandbox as sandbox;
pub use colloquy_speech as speech;
pub use colloquy_store as store;
pub use colloquy_transcripts as transcripts;
pub use colloquy_voices as voices;
pub use colloquy_webhooks as webhooks;
pub use config::Config;

/// Runs the command that the arguments of this process name, to its end. Standard error says why one fails.
///
/// It returns no future: each crate that polls one compiles all that it does once more, and the binary would have most of this library twice.
#[must_use]
pub fn run() -> std::process::ExitCode {
    cli::run()
}
