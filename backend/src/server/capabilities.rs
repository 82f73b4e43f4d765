//! The capabilities of the server, in the order in which they start.

use super::{health::Operations, heartbeat::Heartbeat};
use crate::{
    App, accounts::AccountsCapability, calls::Calls, characters::CharactersCapability,
    generation::Generation, kernel::Capability, media::LiveCalls, messaging::Messaging,
    speech::Speech, webhooks::Webhooks,
};

/// All of them. What others count on starts before them.
pub(super) const ALL: [&dyn Capability<App>; 10] = [
    &Heartbeat,
    &AccountsCapability,
    &CharactersCapability,
    &LiveCalls,
    &Calls,
    &Generation,
    &Speech,
    &Messaging,
    &Webhooks,
    &Operations,
];
