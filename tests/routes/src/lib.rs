//! The routes of capabilities with the layers of their interfaces, for tests: without a listener and other capabilities, and without work beside
//! requests and a worker unless a test starts them. And what tests ask of such routes and of whole servers alike, with doubles of outside services.
//!
//! It knows the accounts, which every capability stands on, and no capability above them, so that these are tested without the server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code: it fails by panicking, and its doubles of services have the time of their machine"
)]

pub mod analyses;
mod answer;
pub mod bases;
mod binary;
mod client;
pub mod doubles;
pub mod messaging;
mod node;
pub mod pdfs;
pub mod receiver;
mod request;
mod routes;
pub mod site;
pub mod sounds;
pub mod storage;
pub mod transcripts;
pub mod upstream;
pub mod vectorstores;
pub mod videos;
pub mod voice_workers;
pub mod voices;
mod work;

pub use answer::Answer;
pub use bases::NoBases;
pub use binary::binary;
pub use client::{ADMIN_KEY, Answers, TestBody, TestClient, TestPartner, TestQuota};
pub use doubles::Doubles;
pub use node::{TestNode, settings};
pub use request::{TestRequest, TestResponse, send};
pub use reqwest::multipart::{Form, Part};
pub use routes::{TestRoutes, TestRoutesBuilder};
pub use work::{TestWork, quick};
