//! The routes of capabilities with the layers of their interfaces, for tests: without a listener, other capabilities and work beside requests. And
//! what tests ask of such routes and of whole servers alike.
//!
//! It knows the accounts, which every capability stands on, and no capability above them, so that these are tested without the server.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test code: it fails by panicking"
)]

mod answer;
mod client;
mod node;
mod request;
mod routes;

pub use answer::Answer;
pub use client::{ADMIN_KEY, Answers, TestClient, TestPartner, TestQuota};
pub use node::{TestNode, settings};
pub use request::{TestRequest, send};
pub use routes::{TestRoutes, TestRoutesBuilder};
