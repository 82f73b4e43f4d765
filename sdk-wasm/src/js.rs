//! The few things of JavaScript that need a plain name here: properties, methods, listeners, the clock, timers, JSON.

use colloquy_protocol::Fields;
use js_sys::{Array, Function, JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::EventTarget;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(handler: &Function, timeout_ms: f64) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(id: &JsValue);

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

/// Lets a promise settle whose outcome shows elsewhere.
pub(crate) fn quietly(promise: Result<Promise, JsValue>) {
    if let Ok(promise) = promise {
        spawn_local(async move {
            let _ = JsFuture::from(promise).await;
        });
    }
}

/// The browser's `navigator`.
pub(crate) fn navigator() -> JsValue {
    get(&js_sys::global(), "navigator")
}

/// A new object with these properties.
pub(crate) fn object<const N: usize>(entries: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (key, value) in entries {
        // Setting a property of a fresh plain object cannot fail.
        let _ = Reflect::set(&object, &JsValue::from_str(key), &value);
    }
    object.into()
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

/// A promise that resolves with `undefined` after a while.
pub(crate) fn sleep(timeout_ms: f64) -> Promise {
    Promise::new(&mut |resolve, _reject| {
        set_timeout(&resolve, timeout_ms);
    })
}

/// The first of two promises to settle.
pub(crate) fn race(one: &Promise, other: &Promise) -> Promise {
    Promise::race(&Array::of2(one, other))
}

/// A listener for an event, removed by `Drop`. It hears the event before the page could stop it.
pub(crate) struct Listener {
    target: EventTarget,
    name: &'static str,
    closure: Closure<dyn FnMut()>,
}

impl Listener {
    pub(crate) fn new(target: &JsValue, name: &'static str, heard: impl FnMut() + 'static) -> Self {
        let target: EventTarget = target.clone().unchecked_into();
        let closure = Closure::<dyn FnMut()>::new(heard);
        // It fails for what is no event target; the browser's own objects are.
        let _ = target.add_event_listener_with_callback_and_bool(
            name,
            closure.as_ref().unchecked_ref(),
            true,
        );
        Self {
            target,
            name,
            closure,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.target.remove_event_listener_with_callback_and_bool(
            self.name,
            self.closure.as_ref().unchecked_ref(),
            true,
        );
    }
}

/// A running `setTimeout`, cleared by `Drop`.
pub(crate) struct Timeout {
    id: JsValue,
}

impl Timeout {
    pub(crate) fn new(handler: &Function, timeout_ms: f64) -> Self {
        Self {
            id: set_timeout(handler, timeout_ms),
        }
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        clear_timeout(&self.id);
    }
}

/// A promise that resolves with `undefined` after a while, or when this is dropped.
pub(crate) struct Alarm {
    promise: Promise,
    resolve: Option<Function>,
    _timeout: Option<Timeout>,
}

impl Alarm {
    pub(crate) fn after(timeout_ms: f64) -> Self {
        let mut resolve = None;
        let promise = Promise::new(&mut |given, _reject| resolve = Some(given));
        let timeout = resolve.as_ref().map(|r| Timeout::new(r, timeout_ms));
        Self {
            promise,
            resolve,
            _timeout: timeout,
        }
    }

    pub(crate) fn promise(&self) -> &Promise {
        &self.promise
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(resolve) = &self.resolve {
            // A promise that is resolved already stays as it is.
            let _ = resolve.call0(&JsValue::UNDEFINED);
        }
    }
}
