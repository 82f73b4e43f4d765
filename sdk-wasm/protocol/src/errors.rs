//! The stable error codes of the SDK, and which of them a server's answer means.

use serde::Serialize;

use crate::CloseCode;

/// Declares the codes once: variant, name on the outside, and the advice that becomes the error's message.
macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal: $advice:literal;)+) => {
        /// Why a call failed, told by a name that does not change between versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[serde(into = "&'static str")]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name that applications compare with.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What happened and what to do about it.
            #[must_use]
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }
        }
    };
}

error_codes! {
    /// The visitor or a policy refused the microphone.
    MicrophoneDenied = "MICROPHONE_DENIED":
        "The microphone is not allowed. Ask the visitor to allow it in the site settings.";
    /// There is no microphone, or the chosen one is gone.
    MicrophoneMissing = "MICROPHONE_MISSING":
        "No microphone was found. Ask the visitor to connect one, or choose another.";
    /// The microphone exists and cannot be read.
    MicrophoneBusy = "MICROPHONE_BUSY":
        "The microphone cannot be read. Close other programs that use it.";
    /// The chosen speaker cannot be used.
    SpeakerMissing = "SPEAKER_MISSING":
        "The speaker cannot be used. Choose another; some browsers do not let a page choose.";
    /// The browser plays no sound before the visitor does something on the page.
    AudioBlocked = "AUDIO_BLOCKED":
        "The browser plays no sound before a click. Call startAudio() when the visitor clicks.";
    /// The page is not served over HTTPS.
    InsecureContext = "INSECURE_CONTEXT":
        "Browsers give the microphone only to HTTPS pages and localhost. Serve the page over HTTPS.";
    /// The browser lacks WebRTC, WebSocket or microphone access.
    UnsupportedBrowser = "UNSUPPORTED_BROWSER":
        "This browser cannot make calls. Ask the visitor to update it.";
    /// An argument of an operation cannot be used.
    InvalidArgument = "INVALID_ARGUMENT":
        "An argument is not valid.";
    /// `handleCall2` was called while a call is active.
    CallActive = "CALL_ACTIVE":
        "A call is active. Call hangUp() before starting another.";
    /// The API key is missing, unknown or not allowed to make calls.
    InvalidKey = "INVALID_KEY":
        "The API key was not accepted. Check the key and its scopes.";
    /// The character does not exist or cannot be used.
    InvalidCharacter = "INVALID_CHARACTER":
        "The character was not accepted. Check the partner and the character name.";
    /// The signed URL or the resume token does not match.
    InvalidSignature = "INVALID_SIGNATURE":
        "The signed URL was not accepted. Pass the signedUrl of the create response unchanged.";
    /// The signed URL expired before a client connected.
    UrlExpired = "URL_EXPIRED":
        "The signed URL has expired. Create a new call and connect at once.";
    /// Another client is in the call.
    CallInUse = "CALL_IN_USE":
        "Another client is in this call. A signed URL is for one client and one use.";
    /// There is no such call, or it is over.
    CallNotFound = "CALL_NOT_FOUND":
        "The call does not exist or is over. Create a new call.";
    /// The service has no room for another call, or is stopping.
    Capacity = "CAPACITY":
        "The service takes no new calls now. Try again in a moment.";
    /// Too many requests, or a quota is used up.
    RateLimited = "RATE_LIMITED":
        "Too many calls. Wait before trying again.";
    /// Client and server do not understand each other.
    Protocol = "PROTOCOL":
        "The server did not speak the call protocol. Check the URL, and update the SDK or the backend.";
    /// The server cannot be reached, or the connection did not come back.
    Network = "NETWORK":
        "The server cannot be reached. Check the network, the backend URL and its CORS settings.";
    /// Signalling works but no audio connection comes about.
    Media = "MEDIA":
        "No audio gets through. Mostly a firewall on the way blocks UDP: let UDP reach the backend's media port, check that \
         the address it announces can be reached from here, or configure a TURN server, over TCP or TLS where UDP is shut.";
    /// The server failed.
    Server = "SERVER":
        "The service failed. Try again; the server's log tells why.";
}

impl ErrorCode {
    /// The code with a name, `None` for names that this version does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// The code behind a WebSocket close number, `None` where the number names no failure of this protocol.
    #[must_use]
    pub fn from_close_number(number: u16) -> Option<Self> {
        Self::from_name(CloseCode::from_number(number)?.code())
    }

    /// What an HTTP status means when the body has no known code.
    #[must_use]
    pub fn from_http_status(status: u16) -> Self {
        match status {
            400 | 422 => Self::InvalidArgument,
            401 | 403 => Self::InvalidKey,
            404 => Self::Network,
            429 => Self::RateLimited,
            503 => Self::Capacity,
            _ => Self::Server,
        }
    }
}

impl From<ErrorCode> for &'static str {
    fn from(code: ErrorCode) -> Self {
        code.as_str()
    }
}

/// A failure as the application sees it: the content of the JavaScript `Error` given to `onCallError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened and what to do, for a developer.
    pub message: String,
}

/// The server's word for a call whose media never came.
const NOT_CONNECTED: &str = "NOT_CONNECTED";

impl CallError {
    /// The error with its code's advice as the message.
    #[must_use]
    pub fn new(code: ErrorCode) -> Self {
        let message = code.advice().to_owned();
        Self { code, message }
    }

    /// The error with its code's advice and what is known beyond it.
    #[must_use]
    pub fn with_detail(code: ErrorCode, detail: &str) -> Self {
        let mut error = Self::new(code);
        if !detail.is_empty() {
            error.message.push_str(" (");
            error.message.push_str(detail);
            error.message.push(')');
        }
        error
    }

    /// The error for a code and message of the server; a code that this version does not know becomes `otherwise` and
    /// stays readable in the message.
    #[must_use]
    pub fn from_server(name: &str, message: &str, otherwise: ErrorCode) -> Self {
        match ErrorCode::from_name(name) {
            Some(code) => Self::with_detail(code, message),
            None if name == NOT_CONNECTED => Self::with_detail(ErrorCode::Media, message),
            None if name.is_empty() => Self::with_detail(otherwise, message),
            None => Self::with_detail(otherwise, &String::from_iter([name, ": ", message])),
        }
    }
}

impl From<ErrorCode> for CallError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_names_are_unique() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_name(code.as_str()), Some(*code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!(code.advice().ends_with('.'));
            assert!(!code.advice().contains("  "));
        }
        assert_eq!(ErrorCode::from_name("WEATHER"), None);
    }

    #[test]
    fn every_close_code_that_ends_a_call_for_its_client_is_an_error() {
        for number in [4400, 4401, 4404, 4409, 4410, 4429, 4503] {
            assert!(ErrorCode::from_close_number(number).is_some(), "{number}");
        }
        for number in [1000, 1001, 1006, 4421, 4999] {
            assert_eq!(ErrorCode::from_close_number(number), None);
        }
    }

    #[test]
    fn a_call_whose_media_never_came_failed_for_its_media() {
        let error = CallError::from_server("NOT_CONNECTED", "", ErrorCode::Server);
        assert_eq!(error.code, ErrorCode::Media);
    }

    #[test]
    fn a_server_code_from_the_future_stays_readable() {
        let error = CallError::from_server("QUOTA_EXCEEDED", "no seconds left", ErrorCode::Server);
        assert_eq!(error.code, ErrorCode::Server);
        assert!(error.message.ends_with("(QUOTA_EXCEEDED: no seconds left)"));
    }
}
