//! What follows from the server's messages.

use super::media::RemoteCandidate;
use super::setup::is_socket_url;
use super::{Call, Command, Event, HangUpReason, Phase, TranscriptLine, frames};
use crate::{ByeReason, CallError, ErrorCode, ServerMessage, SessionState};

impl Call {
    pub(super) fn message(&mut self, now_ms: u64, message: ServerMessage) {
        match message {
            ServerMessage::Welcome {
                call_id,
                character,
                ice_servers,
                resume,
                heartbeat_seconds,
                ..
            } => {
                let resumed = self.link.resume.is_some();
                self.link.welcomed(now_ms, resume, heartbeat_seconds);
                if self.muted || resumed {
                    self.command(Command::Send(frames::mute(self.muted)));
                }
                if self.character_role.is_none() {
                    self.character_role = character;
                }
                self.call_id = Some(call_id);
                self.ice_servers = ice_servers.into();
                self.welcomed(now_ms);
            }
            ServerMessage::Answer { sdp } => {
                if let Some(candidates) = self.media.answered() {
                    self.command(Command::ApplyAnswer(sdp));
                    candidates.into_iter().for_each(|c| self.add_candidate(c));
                    self.renew_if_wanted(now_ms);
                }
            }
            ServerMessage::Candidate {
                candidate,
                sdp_mid,
                sdp_m_line_index,
            } => {
                let remote = RemoteCandidate {
                    candidate,
                    sdp_mid,
                    sdp_m_line_index,
                };
                if let Some(remote) = self.media.remote_candidate(remote) {
                    self.add_candidate(remote);
                }
            }
            ServerMessage::Status {
                state: SessionState::Completed,
            } => self.end(HangUpReason::Remote),
            ServerMessage::Status { state } => {
                self.server_state = state;
                self.update_status();
            }
            ServerMessage::AgentState { state } => self.event(Event::AgentStateChange(state)),
            ServerMessage::Transcript {
                id,
                originator,
                text,
                is_final,
                at_ms,
            } => {
                let line = TranscriptLine {
                    id,
                    originator,
                    role: self.role(originator),
                    text,
                    is_final,
                    at_ms: u32::try_from(at_ms).unwrap_or(u32::MAX),
                };
                self.open_lines.retain(|open| open.id != line.id);
                if !line.is_final {
                    self.open_lines.push(line.clone());
                }
                self.event(Event::Transcript(line));
            }
            ServerMessage::UserInfo { info } => self.event(Event::UserInfo(info)),
            ServerMessage::RagInfo {
                documents,
                count,
                total_tokens,
            } => self.event(Event::RagInfo {
                count: count.unwrap_or(u32::try_from(documents.len()).unwrap_or(u32::MAX)),
                documents,
                total_tokens,
            }),
            ServerMessage::Redirect { url } if is_socket_url(&url) => {
                self.command(Command::CloseSocket);
                self.link.moved(now_ms, url);
                self.media.link_lost();
                self.update_status();
            }
            ServerMessage::Bye { reason, code } => self.bye(reason, code.as_deref()),
            ServerMessage::Error {
                code,
                message,
                fatal,
            } => {
                let error = CallError::from_server(&code, &message, ErrorCode::Server);
                if fatal {
                    self.fail(error);
                } else {
                    self.non_fatal_error(error);
                }
            }
            ServerMessage::Ping { t } => self.command(Command::Send(frames::pong(t))),
            ServerMessage::Redirect { .. }
            | ServerMessage::Pong { .. }
            | ServerMessage::Unknown => {}
        }
    }

    fn welcomed(&mut self, now_ms: u64) {
        for message in std::mem::take(&mut self.link.outbox) {
            self.command(Command::Send(message));
        }
        if self.phase == Phase::Opening {
            // The session is there, so the visitor is not asked for a call that cannot be.
            self.phase = Phase::AwaitingMicrophone;
            self.command(Command::AcquireMicrophone);
        }
        self.begin_media(now_ms);
        self.renew_if_wanted(now_ms);
        self.update_status();
    }

    fn bye(&mut self, reason: ByeReason, code: Option<&str>) {
        match reason {
            ByeReason::HangUp => self.end(HangUpReason::Remote),
            ByeReason::TimeLimit => self.end(HangUpReason::TimeLimit),
            ByeReason::Shutdown => self.end(HangUpReason::Shutdown),
            ByeReason::Replaced => self.fail(ErrorCode::CallInUse.into()),
            ByeReason::Error => self.fail(CallError::from_server(
                code.unwrap_or_default(),
                "",
                ErrorCode::Server,
            )),
        }
    }
}
