//! What the client sends, as the text of a frame; the definitions are in [`crate::ClientMessage`].

use crate::PROTOCOL_VERSION;
use crate::wire::Frame;

/// Begins a call; `metadata` is the JSON text of an object.
pub(super) fn hello(metadata: Option<&str>, without_user_info: bool) -> String {
    let frame = any_hello();
    let frame = match without_user_info {
        true => frame.flag("user_info", false),
        false => frame,
    };
    match metadata {
        Some(metadata) => frame.json("metadata", metadata).end(),
        None => frame.end(),
    }
}

/// Goes on with a call.
pub(super) fn resume(token: &str) -> String {
    any_hello().text("resume", token).end()
}

fn any_hello() -> Frame {
    Frame::of_type("hello")
        .integer("protocol", PROTOCOL_VERSION)
        .text("sdk_version", env!("CARGO_PKG_VERSION"))
}

pub(super) fn offer(sdp: &str, ice_restart: bool) -> String {
    Frame::of_type("offer")
        .text("sdp", sdp)
        .flag("ice_restart", ice_restart)
        .end()
}

pub(super) fn candidate(
    candidate: Option<&str>,
    sdp_mid: Option<&str>,
    sdp_m_line_index: Option<u16>,
) -> String {
    let frame = Frame::of_type("candidate");
    let frame = match candidate {
        Some(candidate) => frame.text("candidate", candidate),
        None => frame.json("candidate", "null"),
    };
    let frame = frame.optional("sdp_mid", sdp_mid);
    match sdp_m_line_index {
        Some(index) => frame.integer("sdp_m_line_index", index.into()).end(),
        None => frame.end(),
    }
}

pub(super) fn mute(muted: bool) -> String {
    Frame::of_type("mute").flag("muted", muted).end()
}

pub(super) fn text(text: &str) -> String {
    Frame::of_type("text").text("text", text).end()
}

pub(super) fn hang_up() -> String {
    Frame::of_type("hang_up").end()
}

pub(super) fn ping(t: f64) -> String {
    Frame::of_type("ping").clock("t", t).end()
}

pub(super) fn pong(t: f64) -> String {
    Frame::of_type("pong").clock("t", t).end()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ClientMessage;

    #[test]
    fn every_frame_is_the_message_it_is_named_for() {
        let check = |frame: String, message: ClientMessage| {
            let read: ClientMessage = serde_json::from_str(&frame).unwrap();
            assert_eq!(read, message, "{frame}");
        };
        let metadata = r#"{"page":"a \"b\""}"#;
        for (without_user_info, user_info) in [(true, false), (false, true)] {
            check(
                hello(Some(metadata), without_user_info),
                ClientMessage::Hello {
                    protocol: PROTOCOL_VERSION,
                    sdk_version: Some(env!("CARGO_PKG_VERSION").into()),
                    metadata: json!({"page": "a \"b\""}).as_object().cloned(),
                    resume: None,
                    user_info,
                },
            );
        }
        check(
            resume("token"),
            ClientMessage::Hello {
                protocol: PROTOCOL_VERSION,
                sdk_version: Some(env!("CARGO_PKG_VERSION").into()),
                metadata: None,
                resume: Some("token".into()),
                user_info: true,
            },
        );
        let sdp = "v=0\r\no=- \"x\"\r\n".to_owned();
        check(
            offer(&sdp, true),
            ClientMessage::Offer {
                sdp,
                ice_restart: true,
            },
        );
        check(
            candidate(Some("c"), Some("0"), Some(7)),
            ClientMessage::Candidate {
                candidate: Some("c".into()),
                sdp_mid: Some("0".into()),
                sdp_m_line_index: Some(7),
            },
        );
        assert_eq!(
            candidate(None, None, None),
            r#"{"type":"candidate","candidate":null}"#
        );
        check(mute(true), ClientMessage::Mute { muted: true });
        let words = "\u{1}\"\\\n".to_owned();
        check(text(&words), ClientMessage::Text { text: words });
        check(hang_up(), ClientMessage::HangUp);
        check(ping(12.0), ClientMessage::Ping { t: 12.0 });
        check(pong(0.5), ClientMessage::Pong { t: 0.5 });
    }
}
