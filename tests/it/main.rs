//! Integration tests: one module a capability, through the real router.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod accounts;
mod calls;
mod calls_recovery;
mod characters;
mod clients;
mod config;
mod drain;
mod fetch;
mod http;
mod jobs;
mod ledger;
mod logs;
mod media;
mod messaging;
mod process;
mod providers;
mod quotas;
mod speech;
mod store;
mod text;
mod traces;
mod webhooks;
