//! The routes of capabilities with the layers of their interfaces, for tests: without a listener, other capabilities and work beside requests, unless
//! a test starts a worker. And what tests ask of such routes and of whole servers alike, with doubles of the outside services.
//!
//! It knows the accounts, which every capability stands on, and no capability above them, so that these are tested without the server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code: it fails by panicking"
)]

mod answer;
mod bases;
mod client;
pub mod doubles;
mod jobs;
mod node;
pub mod receiver;
mod request;
mod routes;

pub use answer::Answer;
pub use bases::NoBases;
pub use client::{ADMIN_KEY, Answers, TestClient, TestPartner, TestQuota};
pub use doubles::Doubles;
pub use jobs::{quick, works_off};
pub use node::{TestNode, settings};
pub use request::{TestRequest, send};
pub use routes::{TestRoutes, TestRoutesBuilder};
