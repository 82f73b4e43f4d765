//! The upgrade of a session's request to a WebSocket, which anybody can send.

use axum::{
    extract::{FromRef, FromRequestParts, WebSocketUpgrade},
    http::request::Parts,
    response::{IntoResponse as _, Response},
};
use colloquy_http::upgrade::upgrade;

use crate::Media;

/// The upgrade that a session's address is for. Anything else is answered with 426, which says what is missing, and is warned of in the log
/// once a minute at most, since anybody can send such requests.
pub(crate) struct SessionUpgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for SessionUpgrade
where
    Media: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let refused = match upgrade(parts).await {
            Ok(upgrade) => return Ok(Self(upgrade)),
            Err(refused) => refused,
        };
        let media = Media::from_ref(state);
        let may_warn = media.limits.may_warn("a session without an upgrade");
        Err(refused.logged(may_warn).into_response())
    }
}
