//! What the page and the machine tell: the page goes away or comes back, the visitor does something, devices change.

use std::rc::{Rc, Weak};

use colloquy_protocol::call::Input;

use crate::driver::Driver;
use crate::js::{self, Listener};
use crate::microphone::media_devices;

/// The listeners of a running call.
pub(crate) struct PageWatch {
    _listeners: [Listener; 5],
}

impl PageWatch {
    pub(crate) fn new(driver: &Weak<Driver>) -> Self {
        let global = js_sys::global();
        let document = js::get(&global, "document");
        let devices = js::get(&js::navigator(), "mediaDevices");
        let listen = |target, name, act: fn(&Rc<Driver>)| {
            let driver = driver.clone();
            Listener::new(target, name, move || {
                if let Some(driver) = driver.upgrade() {
                    act(&driver);
                }
            })
        };
        // What is still held back then is reported.
        let wake = |driver: &Rc<Driver>| drop(driver.wake());
        Self {
            _listeners: [
                // Also when the page may come back from the cache: its call does not.
                listen(&global, "pagehide", |driver| driver.handle(Input::HangUp)),
                listen(&document, "visibilitychange", wake),
                listen(&global, "click", wake),
                listen(&global, "keydown", wake),
                listen(&devices, "devicechange", Driver::follow_devices),
            ],
        }
    }
}

/// Follows the devices for as long as the manager lives, for a page that lists them.
pub(crate) fn watch_devices(driver: Weak<Driver>) -> Option<Listener> {
    let devices = media_devices()?;
    Some(Listener::new(&devices, "devicechange", move || {
        if let Some(driver) = driver.upgrade() {
            driver.tell_devices();
        }
    }))
}
