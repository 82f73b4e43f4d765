//! Browser bindings of Colloquy: the `CallManager` that a page constructs.
//!
//! What a call does and when is decided by `colloquy_protocol::call::Call`. This crate carries it out in a browser:
//! `driver` runs the state machine, and one module each owns the request, the microphone, the socket, the peer
//! connection and the speaker. Whatever is opened is released by `Drop`.

mod config;
mod create;
mod devices;
mod driver;
mod errors;
mod events;
mod js;
mod manager;
mod microphone;
mod peer;
mod socket;
mod speaker;
mod worklet;

pub use manager::CallManager;
