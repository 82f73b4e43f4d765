//! The page's Content-Security-Policy: a connection that it blocks fails without a reason; a separate event has it.

use std::rc::Weak;

use colloquy_protocol::call::Input;
use gloo_events::EventListener;

use crate::driver::Driver;
use crate::js;

/// How long after a connection failed the browser may take to tell that a policy blocked it.
pub(crate) const VIOLATION_DELAY_MS: u32 = 100;

/// Reports what a policy blocks to the call, which knows whether it is its own.
pub(crate) fn watch(driver: Weak<Driver>) -> EventListener {
    on_violation(move |directive, url| {
        if let Some(driver) = driver.upgrade() {
            driver.handle(Input::ConnectionBlocked { directive, url });
        }
    })
}

/// Calls `handler` with the directive and the URL of each violation; a policy that only reports blocks nothing.
pub(crate) fn on_violation(mut handler: impl FnMut(String, String) + 'static) -> EventListener {
    let global = js_sys::global();
    js::listen(&global, "securitypolicyviolation", move |event| {
        let text = |key| js::get(event, key).as_string().unwrap_or_default();
        if text("disposition") != "report" {
            handler(text("effectiveDirective"), text("blockedURI"));
        }
    })
}
