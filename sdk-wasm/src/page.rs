//! Events of the page and its devices: the page is left or shown again, the visitor clicks or types, devices change.

use std::rc::{Rc, Weak};

use colloquy_protocol::call::Input;
use gloo_events::EventListener;

use crate::driver::Driver;
use crate::js;
use crate::microphone::media_devices;

/// The listeners of a running call.
pub(crate) struct PageWatch {
    _listeners: [EventListener; 5],
}

impl PageWatch {
    pub(crate) fn new(driver: &Weak<Driver>) -> Self {
        let global = js_sys::global();
        let document = js::get(&global, "document");
        let devices = js::get(&js::navigator(), "mediaDevices");
        let listen = |target, name, act: fn(&Rc<Driver>)| {
            let driver = driver.clone();
            js::listen(target, name, move |_| {
                if let Some(driver) = driver.upgrade() {
                    act(&driver);
                }
            })
        };
        // Playback that is still blocked afterwards is reported.
        let resume_media = |driver: &Rc<Driver>| drop(driver.resume_media());
        Self {
            _listeners: [
                // Also when the page enters the back/forward cache: its call would not survive there.
                listen(&global, "pagehide", |driver| driver.handle(Input::HangUp)),
                listen(&document, "visibilitychange", resume_media),
                listen(&global, "click", resume_media),
                listen(&global, "keydown", resume_media),
                listen(&devices, "devicechange", Driver::follow_devices),
            ],
        }
    }
}

/// Follows the devices for as long as the manager lives, for a page that lists them.
pub(crate) fn watch_devices(driver: Weak<Driver>) -> Option<EventListener> {
    let devices = media_devices()?;
    Some(js::listen(&devices, "devicechange", move |_| {
        if let Some(driver) = driver.upgrade() {
            driver.report_devices();
        }
    }))
}
