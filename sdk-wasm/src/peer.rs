//! The peer connection: one audio transceiver in both directions.

use std::rc::Rc;

use colloquy_protocol::IceServer;
use colloquy_protocol::call::{Input, MediaState};
use gloo_events::EventListener;
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    MediaStreamTrack, RtcConfiguration, RtcIceCandidateInit, RtcIceConnectionState,
    RtcIceTransportPolicy, RtcOfferOptions, RtcPeerConnection, RtcPeerConnectionIceEvent,
    RtcPeerConnectionState, RtcRtpSender, RtcRtpTransceiver, RtcRtpTransceiverDirection,
    RtcRtpTransceiverInit, RtcSdpType, RtcSessionDescriptionInit, RtcTrackEvent,
};

use crate::config::Ice;
use crate::driver::Reporter;
use crate::errors::message_of;
use crate::js;

/// A peer connection, closed by `Drop`, after which it reports nothing.
pub(crate) struct Peer {
    connection: RtcPeerConnection,
    transceiver: RtcRtpTransceiver,
    reporter: Reporter,
    /// Dropped with this connection: an operation that is still pending when another connection replaces it reports nothing.
    current: Rc<()>,
    _listeners: [EventListener; 4],
}

impl Peer {
    /// Creates the connection that sends `track`; `heard` is called with the other side's track.
    pub(crate) fn new(
        ice: &Ice,
        ice_servers: &[IceServer],
        track: &MediaStreamTrack,
        reporter: Reporter,
        mut heard: impl FnMut(MediaStreamTrack) + 'static,
    ) -> Result<Self, JsValue> {
        let connection = connection(ice, ice_servers)?;

        let found = reporter.clone();
        let on_state = |name| {
            let changed = reporter.clone();
            let observed = connection.clone();
            js::listen(&connection, name, move |_| {
                if let Some(state) = media_state(&observed) {
                    changed.report(Input::MediaChanged(state));
                }
            })
        };
        let listeners = [
            js::listen(&connection, "icecandidate", move |event| {
                if let Some(input) = local_candidate(event.unchecked_ref()) {
                    found.report(input);
                }
            }),
            on_state("connectionstatechange"),
            on_state("iceconnectionstatechange"),
            js::listen(&connection, "track", move |event| {
                heard(event.unchecked_ref::<RtcTrackEvent>().track());
            }),
        ];

        let init = RtcRtpTransceiverInit::new();
        init.set_direction(RtcRtpTransceiverDirection::Sendrecv);
        let transceiver = connection.add_transceiver_with_media_stream_track_and_init(track, &init);
        Ok(Self {
            connection,
            transceiver,
            reporter,
            current: Rc::default(),
            _listeners: listeners,
        })
    }

    /// Makes an offer, sets it as the local description, and reports it.
    pub(crate) fn offer(&self, ice_restart: bool) {
        let connection = self.connection.clone();
        self.report_later(async move {
            Some(match make_offer(&connection, ice_restart).await {
                Ok(sdp) => Input::OfferCreated { sdp },
                Err(error) => Input::MediaFailed(message_of(&error)),
            })
        });
    }

    /// Reports the outcome of what takes time, unless another connection has taken this one's place by then.
    fn report_later(&self, outcome: impl Future<Output = Option<Input>> + 'static) {
        let reporter = self.reporter.clone();
        let current = Rc::downgrade(&self.current);
        js::spawn(async move {
            if let Some(input) = outcome.await
                && current.strong_count() > 0
            {
                reporter.report(input);
            }
        });
    }

    /// Sets the remote description; a refusal is reported.
    pub(crate) fn apply_answer(&self, sdp: &str) {
        let answer = RtcSessionDescriptionInit::new(RtcSdpType::Answer);
        answer.set_sdp(sdp);
        let applied = self.connection.set_remote_description(&answer);
        self.report_later(async move {
            let refused = JsFuture::from(applied).await.err()?;
            Some(Input::MediaFailed(message_of(&refused)))
        });
    }

    /// Adds a remote candidate. The browser queues it while a description is still being set. A candidate that it refuses
    /// is ignored, since others may work.
    pub(crate) fn add_candidate(
        &self,
        candidate: Option<&str>,
        sdp_mid: Option<&str>,
        sdp_m_line_index: Option<u16>,
    ) {
        let init = candidate.map(|candidate| {
            let init = RtcIceCandidateInit::new(candidate);
            init.set_sdp_mid(sdp_mid);
            // Browsers want one of the two; there is one media description.
            init.set_sdp_m_line_index(sdp_m_line_index.or(Some(0)));
            init
        });
        let added = self
            .connection
            .add_ice_candidate_with_opt_rtc_ice_candidate_init(init.as_ref());
        js::spawn(async move {
            let _ = JsFuture::from(added).await;
        });
    }

    /// The browser's statistics.
    pub(crate) fn stats(&self) -> Promise {
        self.connection.get_stats()
    }

    /// What sends the microphone's track.
    pub(crate) fn sender(&self) -> RtcRtpSender {
        self.transceiver.sender()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.connection.close();
    }
}

/// A connection over the page's ICE servers, or these when it has none of its own.
pub(crate) fn connection(
    ice: &Ice,
    ice_servers: &[IceServer],
) -> Result<RtcPeerConnection, JsValue> {
    let configuration = RtcConfiguration::new();
    match &ice.servers {
        Some(servers) => configuration.set_ice_servers(servers),
        None => configuration.set_ice_servers(&js::to_value(&ice_servers)),
    }
    if ice.relay_only {
        configuration.set_ice_transport_policy(RtcIceTransportPolicy::Relay);
    }
    RtcPeerConnection::new_with_configuration(&configuration)
}

pub(crate) async fn make_offer(
    connection: &RtcPeerConnection,
    ice_restart: bool,
) -> Result<String, JsValue> {
    let options = RtcOfferOptions::new();
    options.set_ice_restart(ice_restart);
    let offer = JsFuture::from(connection.create_offer_with_rtc_offer_options(&options)).await?;
    let sdp = js::get(&offer, "sdp").as_string().unwrap_or_default();
    JsFuture::from(connection.set_local_description(offer.unchecked_ref())).await?;
    Ok(sdp)
}

/// A candidate event; the empty candidate that some browsers add before the end of the list is ignored.
fn local_candidate(event: &RtcPeerConnectionIceEvent) -> Option<Input> {
    let Some(found) = event.candidate() else {
        return Some(Input::LocalCandidate {
            candidate: None,
            sdp_mid: None,
            sdp_m_line_index: None,
        });
    };
    let candidate = found.candidate();
    (!candidate.is_empty()).then(|| Input::LocalCandidate {
        candidate: Some(candidate),
        sdp_mid: found.sdp_mid(),
        sdp_m_line_index: found.sdp_m_line_index(),
    })
}

fn media_state(connection: &RtcPeerConnection) -> Option<MediaState> {
    match connection.connection_state() {
        RtcPeerConnectionState::New | RtcPeerConnectionState::Connecting => {
            Some(match connection.ice_connection_state() {
                RtcIceConnectionState::Connected | RtcIceConnectionState::Completed => {
                    MediaState::PathFound
                }
                _ => MediaState::Connecting,
            })
        }
        RtcPeerConnectionState::Connected => Some(MediaState::Connected),
        RtcPeerConnectionState::Disconnected => Some(MediaState::Disconnected),
        RtcPeerConnectionState::Failed => Some(MediaState::Failed),
        _ => None,
    }
}
