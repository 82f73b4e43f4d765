//! The audio session of iOS, set to play and record when a call begins: otherwise the output route changes during the first
//! words.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use js_sys::Reflect;
use wasm_bindgen::prelude::*;

use crate::js;

thread_local! {
    /// The session as the calls of this page hold it: there is one, however many calls there are.
    static HELD: RefCell<Weak<AudioSession>> = const { RefCell::new(Weak::new()) };
}

/// The page's audio session, set to sound in both directions; the last call gives it back as it was by `Drop`.
pub(crate) struct AudioSession {
    session: JsValue,
    former: JsValue,
}

impl AudioSession {
    /// Holds the session; `None` in browsers that have none.
    pub(crate) fn hold() -> Option<Rc<Self>> {
        HELD.with_borrow_mut(|held| {
            if let Some(session) = held.upgrade() {
                return Some(session);
            }
            let session = js::get(&js::navigator(), "audioSession");
            if !session.is_object() {
                return None;
            }
            let former = js::get(&session, "type");
            set_type(&session, &"play-and-record".into());
            let session = Rc::new(Self { session, former });
            *held = Rc::downgrade(&session);
            Some(session)
        })
    }
}

impl Drop for AudioSession {
    fn drop(&mut self) {
        set_type(&self.session, &self.former);
    }
}

/// A refusal is ignored: the browser then keeps its own choice.
fn set_type(session: &JsValue, value: &JsValue) {
    let _ = Reflect::set(session, &"type".into(), value);
}
