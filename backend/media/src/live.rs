//! The sessions of this node, by call.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use subtle::ConstantTimeEq as _;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::signalling::Wire;

/// What a new connection brings to a running session.
#[derive(Debug)]
pub(super) struct Attach {
    /// The connection, after its `hello`.
    pub(super) wire: Wire,
}

/// Why a connection was not attached to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAttached {
    /// The node has no session of this call.
    NoSession,
    /// The resume token is not the one of the last `welcome`.
    WrongToken,
    /// The call has its client.
    InUse,
}

#[derive(Debug)]
struct Live {
    attach: mpsc::Sender<Attach>,
    resume: String,
    /// Whether the signed URL may still open the session: its client was lost before media connected.
    reopenable: bool,
}

/// The sessions of this node.
#[derive(Debug, Default)]
pub(super) struct LiveSessions {
    sessions: Mutex<HashMap<String, Live>>,
    tasks: TaskTracker,
}

impl LiveSessions {
    /// Registers a session and gives it its first resume token.
    pub(super) fn insert(&self, id: &str, attach: mpsc::Sender<Attach>) -> String {
        let resume = resume_token();
        self.lock().insert(
            id.to_owned(),
            Live {
                attach,
                resume: resume.clone(),
                reopenable: false,
            },
        );
        resume
    }

    /// Replaces the resume token, for the next `welcome`.
    pub(super) fn renew(&self, id: &str) -> String {
        let resume = resume_token();
        if let Some(live) = self.lock().get_mut(id) {
            live.resume.clone_from(&resume);
        }
        resume
    }

    /// Says whether the signed URL may open the session again.
    pub(super) fn set_reopenable(&self, id: &str, reopenable: bool) {
        if let Some(live) = self.lock().get_mut(id) {
            live.reopenable = reopenable;
        }
    }

    /// Removes a session that has ended.
    pub(super) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Finds the session that a resume token opens.
    pub(super) fn resume(
        &self,
        id: &str,
        token: &str,
    ) -> Result<mpsc::Sender<Attach>, NotAttached> {
        let sessions = self.lock();
        let live = sessions.get(id).ok_or(NotAttached::NoSession)?;
        if bool::from(live.resume.as_bytes().ct_eq(token.as_bytes())) {
            Ok(live.attach.clone())
        } else {
            Err(NotAttached::WrongToken)
        }
    }

    /// Finds the session that a valid signed URL opens again.
    pub(super) fn reopen(&self, id: &str) -> Result<mpsc::Sender<Attach>, NotAttached> {
        let mut sessions = self.lock();
        let live = sessions.get_mut(id).ok_or(NotAttached::NoSession)?;
        if live.reopenable {
            live.reopenable = false;
            Ok(live.attach.clone())
        } else {
            Err(NotAttached::InUse)
        }
    }

    /// Runs a session's task.
    pub(super) fn spawn(&self, session: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(session);
    }

    /// Waits until no session is left.
    pub(super) async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Live>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resume_token() -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_token_opens_a_session_again() {
        let live = LiveSessions::default();
        let (attach, _inbox) = mpsc::channel(1);
        let first = live.insert("call", attach);
        assert!(live.resume("call", &first).is_ok());
        let second = live.renew("call");
        assert_eq!(
            live.resume("call", &first).unwrap_err(),
            NotAttached::WrongToken
        );
        assert!(live.resume("call", &second).is_ok());
        assert_eq!(
            live.resume("other", &second).unwrap_err(),
            NotAttached::NoSession
        );
    }

    #[test]
    fn a_signed_url_opens_a_session_once_after_an_early_loss() {
        let live = LiveSessions::default();
        let (attach, _inbox) = mpsc::channel(1);
        live.insert("call", attach);
        assert_eq!(live.reopen("call").unwrap_err(), NotAttached::InUse);
        live.set_reopenable("call", true);
        assert!(live.reopen("call").is_ok());
        assert_eq!(live.reopen("call").unwrap_err(), NotAttached::InUse);
    }
}
