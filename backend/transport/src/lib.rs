//! The transport of calls: one UDP port of a node, and WebRTC of each call on the sans-IO core `rtc`. It knows no call, only
//! datagrams, session descriptions and Opus packets.
//!
//! - [`net`]: the one UDP port of all calls
//! - `endpoint`: its sockets
//! - [`peer`]: WebRTC of one call
//! - [`offer`]: what an offer says about the transport, and its bounds
//! - [`ice`]: which addresses the client is at, and what is sent to them
//! - [`handshake`]: the DTLS handshake on a network that loses datagrams
//! - [`reports`]: what the client reports of the character's voice
//! - `reassembly`: its messages that arrive in fragments

pub(crate) mod endpoint;
pub mod handshake;
pub mod ice;
pub mod net;
pub mod offer;
pub mod peer;
pub(crate) mod reassembly;
pub mod reports;
