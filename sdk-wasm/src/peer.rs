//! The peer connection: one audio transceiver in both directions.

use colloquy_protocol::IceServer;
use colloquy_protocol::call::{Input, MediaState};
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    MediaStreamTrack, RtcConfiguration, RtcIceCandidateInit, RtcIceTransportPolicy,
    RtcOfferOptions, RtcPeerConnection, RtcPeerConnectionIceEvent, RtcPeerConnectionState,
    RtcRtpSender, RtcRtpTransceiver, RtcRtpTransceiverDirection, RtcRtpTransceiverInit, RtcSdpType,
    RtcSessionDescriptionInit, RtcTrackEvent,
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
    _on_candidate: Closure<dyn FnMut(RtcPeerConnectionIceEvent)>,
    _on_state: Closure<dyn FnMut()>,
    _on_track: Closure<dyn FnMut(RtcTrackEvent)>,
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
        let on_candidate = Closure::<dyn FnMut(_)>::new(move |event: RtcPeerConnectionIceEvent| {
            if let Some(input) = local_candidate(&event) {
                found.report(input);
            }
        });
        let changed = reporter.clone();
        let observed = connection.clone();
        let on_state = Closure::<dyn FnMut()>::new(move || {
            if let Some(state) = media_state(observed.connection_state()) {
                changed.report(Input::MediaChanged(state));
            }
        });
        let on_track =
            Closure::<dyn FnMut(_)>::new(move |event: RtcTrackEvent| heard(event.track()));
        connection.set_onicecandidate(Some(on_candidate.as_ref().unchecked_ref()));
        connection.set_onconnectionstatechange(Some(on_state.as_ref().unchecked_ref()));
        connection.set_ontrack(Some(on_track.as_ref().unchecked_ref()));

        let init = RtcRtpTransceiverInit::new();
        init.set_direction(RtcRtpTransceiverDirection::Sendrecv);
        let transceiver = connection.add_transceiver_with_media_stream_track_and_init(track, &init);
        Ok(Self {
            connection,
            transceiver,
            reporter,
            _on_candidate: on_candidate,
            _on_state: on_state,
            _on_track: on_track,
        })
    }

    /// Makes an offer, sets it as the local description, and reports it.
    pub(crate) fn offer(&self, ice_restart: bool) {
        let connection = self.connection.clone();
        let reporter = self.reporter.clone();
        spawn_local(async move {
            let input = match make_offer(&connection, ice_restart).await {
                Ok(sdp) => Input::OfferCreated { sdp },
                Err(error) => Input::MediaFailed(message_of(&error)),
            };
            reporter.report(input);
        });
    }

    /// Sets the remote description; a refusal is reported.
    pub(crate) fn apply_answer(&self, sdp: &str) {
        let answer = RtcSessionDescriptionInit::new(RtcSdpType::Answer);
        answer.set_sdp(sdp);
        let applied = self.connection.set_remote_description(&answer);
        let reporter = self.reporter.clone();
        spawn_local(async move {
            if let Err(error) = JsFuture::from(applied).await {
                reporter.report(Input::MediaFailed(message_of(&error)));
            }
        });
    }

    /// Adds a remote candidate. The browser itself keeps it behind a description that is still being set; one that it
    /// refuses is a path less, not a failure.
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
        spawn_local(async move {
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
        self.connection.set_onicecandidate(None);
        self.connection.set_onconnectionstatechange(None);
        self.connection.set_ontrack(None);
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
        None => configuration.set_ice_servers(&ice_server_array(ice_servers)),
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

fn ice_server_array(servers: &[IceServer]) -> JsValue {
    let array = Array::new();
    for server in servers {
        let urls: Array = server
            .urls
            .iter()
            .map(|url| JsValue::from_str(url))
            .collect();
        let text = |value: &Option<String>| value.as_deref().map_or(JsValue::UNDEFINED, Into::into);
        array.push(&js::object([
            ("urls", urls.into()),
            ("username", text(&server.username)),
            ("credential", text(&server.credential)),
        ]));
    }
    array.into()
}

/// A candidate event; the empty candidate that some browsers add before the end of the list says nothing.
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

fn media_state(state: RtcPeerConnectionState) -> Option<MediaState> {
    match state {
        RtcPeerConnectionState::New | RtcPeerConnectionState::Connecting => {
            Some(MediaState::Connecting)
        }
        RtcPeerConnectionState::Connected => Some(MediaState::Connected),
        RtcPeerConnectionState::Disconnected => Some(MediaState::Disconnected),
        RtcPeerConnectionState::Failed => Some(MediaState::Failed),
        _ => None,
    }
}
