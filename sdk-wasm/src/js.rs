//! Helpers for JavaScript values and browser APIs: properties, methods, listeners, the clock, timers, JSON.

use std::pin::Pin;

use colloquy_protocol::Fields;
use gloo_events::{EventListener, EventListenerOptions};
use gloo_timers::callback::Timeout;
use js_sys::{Array, Function, JSON, Promise, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Event;

use crate::serializer::Serializer;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    pub(crate) fn console_error(message: &str, cause: &JsValue);
}

/// Milliseconds on a clock that never goes back.
pub(crate) fn now_ms() -> u64 {
    performance_now() as u64
}

/// A property, `undefined` where there is none or the value has no properties.
pub(crate) fn get(target: &JsValue, key: &str) -> JsValue {
    Reflect::get(target, &JsValue::from_str(key)).unwrap_or(JsValue::UNDEFINED)
}

/// A property that is a function.
pub(crate) fn get_function(target: &JsValue, key: &str) -> Option<Function> {
    get(target, key).dyn_into().ok()
}

/// Calls a method that few browsers have or few calls need; one that is missing is an error like one that throws.
pub(crate) fn invoke(target: &JsValue, name: &str, arguments: &Array) -> Result<JsValue, JsValue> {
    let method: Function = get(target, name).dyn_into()?;
    method.apply(target, arguments)
}

/// The same for a method that returns a promise, awaited.
pub(crate) async fn invoke_async(
    target: &JsValue,
    name: &str,
    arguments: &Array,
) -> Result<JsValue, JsValue> {
    JsFuture::from(Promise::resolve(&invoke(target, name, arguments)?)).await
}

/// Awaits a promise and ignores its outcome, so that a rejection is not reported as unhandled.
pub(crate) fn ignore_outcome(promise: Result<Promise, JsValue>) {
    if let Ok(promise) = promise {
        spawn(async move {
            let _ = JsFuture::from(promise).await;
        });
    }
}

/// Runs a future to its end, compiled once for all of them.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) {
    spawn_boxed(Box::pin(future));
}

fn spawn_boxed(future: Pin<Box<dyn Future<Output = ()>>>) {
    wasm_bindgen_futures::spawn_local(future);
}

/// The browser's `navigator`.
pub(crate) fn navigator() -> JsValue {
    get(&js_sys::global(), "navigator")
}

/// A value as JavaScript has it: a structure is a plain object, `None` is `null`.
pub(crate) fn to_value(value: &impl Serialize) -> JsValue {
    let value = value.serialize(Serializer);
    debug_assert!(value.is_ok(), "a shape that nothing else here has");
    value.unwrap_or(JsValue::UNDEFINED)
}

/// `undefined` and `null` are both absent.
pub(crate) fn is_absent(value: &JsValue) -> bool {
    value.is_undefined() || value.is_null()
}

/// The JSON text of an object; `None` for what is no object or has no JSON.
pub(crate) fn object_json(value: &JsValue) -> Option<String> {
    if !value.is_object() || Array::is_array(value) {
        return None;
    }
    let text = JSON::stringify(value).ok()?.as_string()?;
    text.starts_with('{').then_some(text)
}

/// A parsed JSON value as the protocol reads it.
pub(crate) struct Parsed(JsValue);

impl Parsed {
    /// `None` for what is no JSON.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        JSON::parse(text).ok().map(Self)
    }

    /// A value that the browser has parsed.
    pub(crate) fn of(value: JsValue) -> Self {
        Self(value)
    }

    fn list(&self, key: &str) -> Option<Array> {
        get(&self.0, key).dyn_into().ok()
    }
}

impl Fields for Parsed {
    fn text(&self, key: &str) -> Option<String> {
        get(&self.0, key).as_string()
    }

    fn number(&self, key: &str) -> Option<f64> {
        get(&self.0, key).as_f64()
    }

    fn flag(&self, key: &str) -> Option<bool> {
        get(&self.0, key).as_bool()
    }

    fn object(&self, key: &str) -> Option<Self> {
        let value = get(&self.0, key);
        value.is_object().then_some(Self(value))
    }

    fn objects(&self, key: &str) -> Option<Vec<Self>> {
        Some(self.list(key)?.iter().map(Self).collect())
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        self.list(key)?
            .iter()
            .map(|text| text.as_string())
            .collect()
    }
}

/// Waits. gloo's own future for this needs another crate.
pub(crate) async fn sleep(timeout_ms: u32) {
    let promise = Promise::new(&mut |resolve, _reject| {
        Timeout::new(timeout_ms, move || settle(Some(&resolve))).forget();
    });
    // This promise never rejects.
    let _ = JsFuture::from(promise).await;
}

/// The first of two promises to settle.
pub(crate) fn race(one: &Promise, other: &Promise) -> Promise {
    Promise::race(&Array::of2(one, other))
}

/// Listens for an event until what this gives is dropped. It hears the event before the page could stop it.
pub(crate) fn listen(
    target: &JsValue,
    name: &'static str,
    handler: impl FnMut(&Event) + 'static,
) -> EventListener {
    listen_boxed(target, name, Box::new(handler))
}

/// Compiled once for all listeners.
fn listen_boxed(
    target: &JsValue,
    name: &'static str,
    handler: Box<dyn FnMut(&Event)>,
) -> EventListener {
    let options = EventListenerOptions::run_in_capture_phase();
    EventListener::new_with_options(target.unchecked_ref(), name, options, handler)
}

/// A promise that resolves with `undefined` after a while, or when this is dropped.
pub(crate) struct TimeoutPromise {
    promise: Promise,
    resolve: Option<Function>,
    _timeout: Timeout,
}

impl TimeoutPromise {
    pub(crate) fn after(timeout_ms: u32) -> Self {
        let mut resolve = None;
        let promise = Promise::new(&mut |given, _reject| resolve = Some(given));
        let over = resolve.clone();
        Self {
            promise,
            resolve,
            _timeout: Timeout::new(timeout_ms, move || settle(over.as_ref())),
        }
    }

    pub(crate) fn promise(&self) -> &Promise {
        &self.promise
    }
}

impl Drop for TimeoutPromise {
    fn drop(&mut self) {
        settle(self.resolve.as_ref());
    }
}

/// Resolves a promise; one that is resolved already stays as it is.
pub(crate) fn settle(resolve: Option<&Function>) {
    if let Some(resolve) = resolve {
        let _ = resolve.call0(&JsValue::UNDEFINED);
    }
}
