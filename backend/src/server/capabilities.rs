//! The capabilities of the server, in the order in which they start.

use super::{health::Operations, heartbeat::Heartbeat, texts::Texts};
use crate::{
    App, accounts::AccountsCapability, analyses::AnalysesCapability, audit::AuditCapability,
    bases::BasesCapability, blobs::BlobsCapability, calls::CallsCapability,
    characters::CharactersCapability, console::ConsoleCapability, events::EventsCapability,
    generation::GenerationCapability, kernel::Capability, media::MediaCapability,
    messaging::MessagingCapability, speech::SpeechCapability, transcripts::TranscriptsCapability,
    voices::VoicesCapability, webhooks::WebhooksCapability,
};

/// All of them. What others count on starts before them.
pub(super) const ALL: [&dyn Capability<App>; 19] = [
    &Heartbeat,
    &AccountsCapability,
    &BlobsCapability,
    &BasesCapability,
    &CharactersCapability,
    &MediaCapability,
    &CallsCapability,
    &GenerationCapability,
    &SpeechCapability,
    &MessagingCapability,
    &TranscriptsCapability,
    &AnalysesCapability,
    &VoicesCapability,
    &WebhooksCapability,
    &ConsoleCapability,
    &EventsCapability,
    &AuditCapability,
    &Texts,
    &Operations,
];
