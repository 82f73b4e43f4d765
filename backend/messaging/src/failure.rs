//! Why a completion failed: for the client without anything of the services behind, for the log with it.

use std::borrow::Cow;

use colloquy_kernel::jobs;
use colloquy_providers::{ProviderError, ProviderErrorKind};
use colloquy_sandbox::{Limit, SandboxError};
use colloquy_speech::{OggError, SoundError};

use super::output::Reason;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("an audio file: {0}")]
    Unreadable(SandboxError<OggError>),
    #[error("the audio is too long")]
    TooLong,
    #[error("no words in the new messages")]
    NothingHeard,
    #[error("transcription: {0}")]
    Transcription(ProviderError),
    #[error("reply: {0}")]
    Reply(ProviderError),
    #[error("the reply is empty")]
    EmptyReply,
    #[error("speech: {0}")]
    Speech(SoundError),
    #[error("it took too long")]
    TimedOut,
    #[error("its process ended too often")]
    Interrupted,
    #[error("no memory for the documents of its character")]
    NoMemory,
}

impl jobs::Failure for Failure {
    fn may_pass(&self) -> bool {
        match self {
            Self::Unreadable(error) => error.may_pass(),
            Self::Transcription(error)
            | Self::Reply(error)
            | Self::Speech(SoundError::Provider(error)) => error.kind.is_transient(),
            Self::EmptyReply | Self::Speech(SoundError::Silent) => true,
            _ => false,
        }
    }
}

impl Failure {
    /// The failure of a model that was asked for a reply.
    pub(super) fn of_reply(error: ProviderError) -> Self {
        match error.kind {
            ProviderErrorKind::Empty => Self::EmptyReply,
            _ => Self::Reply(error),
        }
    }

    /// A stable name.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "audio_unreadable",
            Self::TooLong => "audio_too_long",
            Self::NothingHeard => "nothing_heard",
            Self::Transcription(_) => "transcription_failed",
            Self::Reply(_) | Self::EmptyReply => "reply_failed",
            Self::Speech(_) => "speech_failed",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
            Self::NoMemory => "no_memory",
        }
    }

    /// What the client is told.
    pub(super) fn reason(&self) -> Reason {
        let message = match self {
            Self::Unreadable(error) => {
                format!("An audio file cannot be read: {}", unreadable(error))
            }
            Self::TooLong => "The audio messages last too long".to_owned(),
            Self::NothingHeard => "There are no words in the new messages".to_owned(),
            Self::Transcription(_) => "The audio messages could not be transcribed".to_owned(),
            Self::Reply(_) => "The model failed".to_owned(),
            Self::EmptyReply => "The model gave no answer".to_owned(),
            Self::Speech(error) => format!("The answer could not be spoken: {}", unspoken(error)),
            Self::TimedOut => "The answer took too long".to_owned(),
            Self::Interrupted => "The server was interrupted too often".to_owned(),
            Self::NoMemory => "The server has no memory for the character's documents".to_owned(),
        };
        Reason {
            code: self.code().to_owned(),
            message,
        }
    }
}

/// Why there is no sound, without anything of the service behind.
fn unspoken(error: &SoundError) -> Cow<'static, str> {
    match error {
        SoundError::Provider(error) => error.reason(),
        SoundError::NotSpoken(unspoken) => unspoken.to_string().into(),
        SoundError::Silent => "no sound came".into(),
        SoundError::Endless => "the speech does not end".into(),
        SoundError::Stopped => "the server stopped".into(),
        SoundError::Encode(_) | SoundError::RateChanged => "unusable sound".into(),
        SoundError::NoRoom(_) => "there is no memory for the sound".into(),
    }
}

/// What is wrong with a file, as far as it is the file.
fn unreadable(error: &SandboxError<OggError>) -> String {
    match error {
        SandboxError::Refused(error) => error.to_string(),
        SandboxError::Limit(Limit::Memory) => "it takes too much memory".to_owned(),
        SandboxError::Limit(Limit::Time) => "it takes too much time".to_owned(),
        SandboxError::Limit(Limit::Output) => "it holds too much sound".to_owned(),
        SandboxError::Crashed(_) => "the decoder failed".to_owned(),
        SandboxError::Killed | SandboxError::Full(_) | SandboxError::NotStarted(_) => {
            "the decoder was not available".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_an_answer_is_told_from_one_that_failed() {
        for (kind, message) in [
            (ProviderErrorKind::Empty, "The model gave no answer"),
            (ProviderErrorKind::Malformed, "The model failed"),
        ] {
            let error = ProviderError::new("secret.example", kind, "sk-secret");
            let reason = Failure::of_reply(error).reason();
            assert_eq!(reason.code, "reply_failed");
            assert_eq!(reason.message, message);
        }
    }
}
