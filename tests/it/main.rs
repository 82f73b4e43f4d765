//! Integration tests of calls, text, speech, messaging and what they stand on: one module a capability, through the real router.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and measures what it waited for"
)]

mod accounts;
mod bodies;
mod calls;
mod calls_recovery;
mod clients;
mod commits;
mod config;
mod drain;
mod faults;
mod fetch;
mod front;
mod http;
mod input;
mod ledger;
mod logs;
mod media;
mod messaging;
mod models;
mod process;
mod providers;
mod sandbox;
mod speech;
mod system;
mod text;
mod traces;
