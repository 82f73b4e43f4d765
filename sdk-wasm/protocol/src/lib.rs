//! What the Colloquy SDK and the Colloquy backend agree on: the signalling messages of a call session, the close codes
//! of its WebSocket, the stable error codes, and the client's call state machine. Beside it stands what the client makes
//! of its browser's statistics.
//!
//! This crate knows no browser, no socket and no clock. Both sides compile it, so there is one definition of the wire.

pub mod call;
mod check;
mod codes;
mod create;
mod errors;
mod messages;
mod stats;
mod wire;

pub use check::{CheckAnswer, check_request, check_socket_url, no_socket};
pub use codes::{ByeReason, CloseCode};
pub use create::{Character, CreateAnswer, CreateRequest, NewCall};
pub use errors::{CallError, ErrorCode};
pub use messages::{
    AgentState, ClientMessage, IceServer, MAX_FRAME_BYTES, MAX_MESSAGES_PER_SECOND, MAX_TEXT_CHARS,
    Originator, PROTOCOL_VERSION, RagDocument, ServerMessage, SessionState,
};
pub use stats::{CallStats, StatsMeter, path};
pub use wire::{Fields, read_server_message};
