//! HTTP: connections, interfaces and what is around their routes, the error that every handler returns, extractors, limits.
//!
//! It owns no domain and knows none: a handler lives in its capability's `routes.rs`, and who asks is for `accounts` to say.

mod bodies;
mod draining;
mod edge;
pub mod error;
pub mod extract;
pub mod file;
pub mod form;
pub mod front;
pub mod guarded;
pub mod intake;
mod interface;
pub mod limits;
pub mod memory;
pub mod observe;
mod page;
mod parameters;
mod shape;
pub mod sockets;
mod sse;
mod storing;
pub mod upgrade;

use axum::http::HeaderName;

pub use edge::Edge;
pub use error::{ApiError, WarnedBefore};
pub use extract::{ApiJson, ApiPath, ApiQuery, ClientAddress};
pub use interface::Interface;
pub use observe::Arrival;
pub use page::{Listed, Listing, NoFilter, Page, PageQuery, StrictQuery};
pub use parameters::separated;
pub use shape::public_error;
pub use shape::{ErrorContext, ErrorShape};
pub use sse::event_stream;
pub use storing::{DiskLow, needs_disk};

/// The header that tells what an answer goes without; pages may read it.
pub const WARNING: HeaderName = HeaderName::from_static("x-colloquy-warning");
