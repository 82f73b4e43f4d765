//! Models are got from web servers, packages and folders, whatever breaks off on the way.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say where; its server ends with it"
)]

mod contents;
mod folders;
mod npm;
mod packages;
mod server;
mod setting;
mod sources;
mod transfers;
