//! HTTP: the list of routes, the error that every handler returns, extractors, limits and the OpenAPI document.
//!
//! It owns no domain: a handler lives in its capability's `routes.rs`.

pub mod error;
pub mod extract;
pub mod health;
pub mod limits;
mod observe;
pub mod openapi;
pub mod router;
mod unread;

pub use error::{ApiError, ErrorContext, ErrorShape, FieldError};
pub use extract::{ApiJson, ApiPath, ApiQuery, Caller, ClientAddress, PartnerTenant};
pub use observe::Arrival;
pub use router::router;
