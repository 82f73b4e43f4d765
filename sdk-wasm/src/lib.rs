//! Browser bindings of Colloquy: the `CallManager` that a page constructs.
//!
//! What a call does and when is decided by `colloquy_protocol::call::Call`. This crate carries it out in a browser:
//! `driver` runs the state machine, and one module each owns the request, the microphone, the socket, the peer
//! connection, the speaker, the audio session of a phone, the screen's wake lock, the page's policy and the log of the
//! conversation.
//! Whatever is opened is released by `Drop`.

mod audio_session;
mod check;
mod config;
mod create;
mod devices;
mod driver;
mod errors;
mod events;
mod history;
mod js;
mod manager;
mod microphone;
mod page;
mod peer;
mod policy;
mod reports;
mod serializer;
mod socket;
mod sound;
mod speaker;
mod stats;
mod wake_lock;
mod worklet;

pub use manager::CallManager;

/// Half the size of the standard one, which counts in a page.
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();
