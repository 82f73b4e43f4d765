//! The client against a small server in the same process that sends every Opus packet back.

use axum::{
    Router,
    extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade},
    routing::get,
};
use bytes::BytesMut;
use rtc::{
    media_stream::MediaStreamTrack,
    peer_connection::{
        RTCPeerConnection, RTCPeerConnectionBuilder,
        configuration::{
            media_engine::{MIME_TYPE_OPUS, MediaEngine},
            setting_engine::SettingEngineBuilder,
        },
        message::{RTCMessage, TaggedRTCMessage},
        sdp::RTCSessionDescription,
        transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate, RTCIceCandidateInit},
    },
    rtp_transceiver::rtp_sender::{
        RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
        RtpCodecKind,
    },
    sansio::Protocol as _,
    shared::{TaggedBytesMut, TransportContext, TransportProtocol},
};
use tokio::net::UdpSocket;

use super::*;
use crate::eventually;

const SSRC: u32 = 7;

async fn echo_server() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upgrade = |upgrade: WebSocketUpgrade| async move { upgrade.on_upgrade(echo) };
    TaskTracker::new()
        .spawn(axum::serve(listener, Router::new().route("/", get(upgrade))).into_future());
    format!("ws://{address}/")
}

fn echo_peer(local: SocketAddr) -> (RTCPeerConnection, rtc::rtp_transceiver::RTCRtpSenderId) {
    let codec = RTCRtpCodec {
        mime_type: MIME_TYPE_OPUS.to_owned(),
        clock_rate: 48_000,
        channels: 2,
        ..Default::default()
    };
    let mut media_engine = MediaEngine::default();
    let parameters = RTCRtpCodecParameters {
        rtp_codec: codec.clone(),
        payload_type: 111,
    };
    media_engine
        .register_codec(parameters, RtpCodecKind::Audio)
        .unwrap();
    let mut connection = RTCPeerConnectionBuilder::new()
        .with_setting_engine(
            SettingEngineBuilder::new()
                .with_include_loopback_candidate(true)
                .build(),
        )
        .with_media_engine(media_engine)
        .build(now())
        .unwrap();
    let encoding = RTCRtpEncodingParameters {
        rtp_coding_parameters: RTCRtpCodingParameters {
            ssrc: Some(SSRC),
            ..Default::default()
        },
        codec,
        ..Default::default()
    };
    let (stream, track) = ("echo".to_owned(), "echo".to_owned());
    let track = MediaStreamTrack::new(
        stream,
        track,
        "echo".to_owned(),
        RtpCodecKind::Audio,
        vec![encoding],
    );
    let sender = connection.add_track(track).unwrap();
    let candidate = CandidateHostConfig {
        base_config: CandidateConfig {
            network: "udp".to_owned(),
            address: local.ip().to_string(),
            port: local.port(),
            component: 1,
            ..Default::default()
        },
        ..Default::default()
    };
    let candidate = RTCIceCandidate::from(&candidate.new_candidate_host().unwrap())
        .to_json()
        .unwrap();
    connection.add_local_candidate(candidate).unwrap();
    (connection, sender)
}

/// One session; the second connection resumes nothing but is welcomed all the same.
async fn echo(mut socket: WebSocket) {
    let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let local = udp.local_addr().unwrap();
    let (mut connection, sender) = echo_peer(local);
    let mut buffer = BytesMut::new();
    loop {
        while let Some(TaggedRTCMessage { message, .. }) = connection.poll_read() {
            if let RTCMessage::RtpPacket(_, mut packet) = message {
                packet.header.ssrc = SSRC;
                connection
                    .rtp_sender(sender)
                    .unwrap()
                    .write_rtp(now(), packet)
                    .unwrap();
            }
        }
        while connection.poll_event().is_some() {}
        while let Some(datagram) = connection.poll_write() {
            let _ = udp.try_send_to(&datagram.message, datagram.transport.peer_addr);
        }
        let tick = connection
            .poll_timeout()
            .unwrap_or_else(|| now() + Duration::from_secs(1));
        buffer.reserve(2_048);
        tokio::select! {
            () = tokio::time::sleep_until(tick.into()) => { let _ = connection.handle_timeout(now()); }
            read = udp.recv_buf_from(&mut buffer) => {
                let transport_protocol = TransportProtocol::UDP;
                let peer_addr = read.unwrap().1;
                let transport = TransportContext { local_addr: local, peer_addr, transport_protocol, ecn: None };
                let _ = connection.handle_read(TaggedBytesMut { now: now(), transport, message: buffer.split() });
            }
            message = socket.recv() => {
                let Some(Ok(Message::Text(text))) = message else { return };
                if let Some(answer) = signalled(&mut connection, &text) {
                    let last = matches!(answer, ServerMessage::Bye { .. });
                    let answer = serde_json::to_string(&answer).unwrap();
                    socket.send(Message::Text(answer.into())).await.unwrap();
                    if last {
                        let close = CloseFrame { code: 1000, reason: "BYE".into() };
                        let _ = socket.send(Message::Close(Some(close))).await;
                    }
                }
            }
        }
    }
}

fn signalled(connection: &mut RTCPeerConnection, text: &str) -> Option<ServerMessage> {
    match serde_json::from_str(text).unwrap() {
        ClientMessage::Hello { resume, .. } => Some(ServerMessage::Welcome {
            call_id: "/v2/calls/echo".to_owned(),
            character: None,
            ice_servers: vec![],
            resume: resume.map_or("first".to_owned(), |token| format!("after {token}")),
            time_limit_seconds: 60,
            heartbeat_seconds: 1,
        }),
        ClientMessage::Offer { sdp, .. } => {
            connection
                .set_remote_description(now(), RTCSessionDescription::offer(sdp).unwrap())
                .unwrap();
            let answer = connection.create_answer(None).unwrap();
            connection.set_local_description(now(), answer).unwrap();
            Some(ServerMessage::Answer {
                sdp: connection.local_description().unwrap().sdp,
            })
        }
        ClientMessage::Candidate {
            candidate: Some(candidate),
            sdp_mid,
            ..
        } => {
            let candidate = RTCIceCandidateInit {
                candidate,
                sdp_mid,
                ..Default::default()
            };
            connection.add_remote_candidate(candidate).unwrap();
            None
        }
        ClientMessage::Ping { t } => Some(ServerMessage::Pong { t }),
        ClientMessage::HangUp => Some(ServerMessage::Bye {
            reason: colloquy_protocol::ByeReason::HangUp,
            code: None,
        }),
        _ => None,
    }
}

/// More than anything here takes unless it is broken.
fn soon() -> Duration {
    patience(Duration::from_secs(10))
}

async fn connect(stack: Stack) -> NativeClient {
    let options = ClientOptions {
        stack,
        ..ClientOptions::default()
    };
    NativeClient::connect_with(&echo_server().await, options)
        .await
        .unwrap()
}

#[tokio::test]
async fn speech_comes_back_and_then_silence_with_rtc() {
    speech_comes_back_and_then_silence(Stack::Rtc).await;
}

#[tokio::test]
async fn speech_comes_back_and_then_silence_with_webrtc() {
    speech_comes_back_and_then_silence(Stack::Webrtc).await;
}

async fn speech_comes_back_and_then_silence(stack: Stack) {
    // Encoding it takes the thread that the client sends from.
    let speech = Speech::go_forward_trimmed().unwrap();
    let client = connect(stack).await;
    assert!(client.connect_time().unwrap() < soon());
    let voiced_ms = speech.voiced_ms() - 20;
    let before = now();
    let spoken = client.speak(&speech).await.unwrap();
    // Both ends are moments of sending, so a busy machine makes this longer, but hardly shorter.
    let took = spoken.ended.duration_since(spoken.began);
    assert!(took.as_millis() as u64 > voiced_ms - 100, "{took:?}");
    let first = client.reply_audio(before, soon()).await.unwrap();
    assert!(first.at >= spoken.began, "it came back before it was said");
    assert!(first.at < spoken.ended, "it came back at its end");
    client
        .silence(Duration::from_millis(300), soon())
        .await
        .unwrap();
    let last = client.log().last_audible(now()).unwrap();
    assert!(
        last.at >= spoken.ended,
        "the last voiced frame was not audible"
    );
    // By the clock of the media, which no machine delays, it is as long as it was said.
    let heard_ms = u64::from(last.timestamp.wrapping_sub(first.timestamp)) / 48;
    assert!(heard_ms.abs_diff(voiced_ms) <= 40, "{heard_ms} {voiced_ms}");
    let bye = client.hang_up().await.unwrap();
    assert!(matches!(bye, ServerMessage::Bye { .. }), "{bye:?}");
}

#[tokio::test]
async fn media_survives_a_lost_socket_and_a_new_port_with_rtc() {
    media_survives_a_lost_socket_and_a_new_port(Stack::Rtc).await;
}

#[tokio::test]
async fn media_survives_a_lost_socket_and_a_new_port_with_webrtc() {
    media_survives_a_lost_socket_and_a_new_port(Stack::Webrtc).await;
}

async fn media_survives_a_lost_socket_and_a_new_port(stack: Stack) {
    let client = connect(stack).await;
    let before = now();
    client.restart_ice(true).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    assert!(client.reply_audio(before, soon()).await.is_some());
    assert_eq!(client.resume_token().unwrap(), "first");
    client.drop_socket().await.unwrap();
    client.resume().await.unwrap();
    assert_eq!(client.resume_token().unwrap(), "after first");
}

#[tokio::test]
async fn a_cut_network_is_silent_and_dtx_sends_little_with_rtc() {
    a_cut_network_is_silent_and_dtx_sends_little(Stack::Rtc).await;
}

#[tokio::test]
async fn a_cut_network_is_silent_and_dtx_sends_little_with_webrtc() {
    a_cut_network_is_silent_and_dtx_sends_little(Stack::Webrtc).await;
}

async fn a_cut_network_is_silent_and_dtx_sends_little(stack: Stack) {
    let options = ClientOptions {
        stack,
        between: Between::Dtx,
        ..ClientOptions::default()
    };
    let client = NativeClient::connect_with(&echo_server().await, options)
        .await
        .unwrap();
    let connected = now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let some = async || client.log().packets.len() >= 2;
    eventually("some come", some).await;
    let packets = client.log().packets.len();
    let most = 2 + connected.elapsed().as_millis() as usize / 300;
    assert!(packets <= most, "{packets}");
    client.between(Between::RoomTone).await.unwrap();
    let many = async {
        while client.log().packets.len() <= packets + 40 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(soon(), many).await.unwrap();
    client
        .conditions(Conditions {
            cut: true,
            ..Conditions::default()
        })
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let packets = client.log().packets.len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.log().packets.len(), packets);
    client
        .message(now() - soon(), soon(), |message| {
            matches!(message, ServerMessage::Pong { .. }).then_some(())
        })
        .await
        .unwrap();
}
