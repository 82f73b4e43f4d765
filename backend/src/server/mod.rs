//! The server: which capabilities it has, what is made of their list, and in which order it starts and stops.

mod capabilities;
mod equipment;
mod health;
mod heartbeat;
pub mod openapi;
pub(crate) mod private;
mod router;
mod start;
mod system;
mod texts;

pub(crate) use self::system::SystemSetting;
pub use self::{
    equipment::Equipment,
    health::DeepHealth,
    router::{router, with_layers},
    start::{bind, install_tls_provider, run, serve, start_background, start_worker},
    texts::recount_texts,
};
