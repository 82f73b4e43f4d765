//! Integration tests of what partners bring to be worked on, which are documents, recordings, voices and dialogs: one module a capability, through the
//! real router.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and measures what it waited for"
)]

mod analyses;
mod bases;
mod documents;
mod transcripts;
mod voices;
