//! The SDK's HTTP requests: the one that creates a call in client mode, and that of the check before a call.

use std::rc::Rc;

use colloquy_protocol::call::Input;
use colloquy_protocol::{CreateAnswer, CreateRequest};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, RequestInit, Response};

use crate::driver::Reporter;
use crate::js;

/// A running request, aborted by `Drop`.
pub(crate) struct Creation {
    abort: Option<AbortController>,
    /// Held while the request is the call's.
    _current: Rc<()>,
}

impl Creation {
    /// Sends the request and reports its outcome.
    pub(crate) fn begin(request: CreateRequest, reporter: Reporter) -> Self {
        let abort = AbortController::new().ok();
        let sent = post(
            &request.url,
            Some(&request.key),
            &request.body,
            abort.as_ref(),
        );
        let current = Rc::<()>::default();
        let held = Rc::downgrade(&current);
        js::spawn(async move {
            match (answer(sent).await, held.upgrade()) {
                (Ok(answer), _) => reporter.report(Input::CreateAnswered(answer)),
                (Err(_), Some(current)) => {
                    reporter.report_failure(Input::CreateFailed, &current);
                }
                (Err(_), None) => {}
            }
        });
        Self {
            abort,
            _current: current,
        }
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        if let Some(abort) = &self.abort {
            abort.abort();
        }
    }
}

/// Posts JSON.
pub(crate) fn post(
    url: &str,
    key: Option<&str>,
    body: &str,
    abort: Option<&AbortController>,
) -> Result<Promise, JsValue> {
    let headers = Headers::new()?;
    headers.set("Content-Type", "application/json")?;
    if let Some(key) = key {
        headers.set("X-Api-Key", key)?;
    }
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_headers(&headers);
    init.set_body(&JsValue::from_str(body));
    init.set_signal(abort.map(AbortController::signal).as_ref());
    let global = js_sys::global();
    let fetch: Function = js::get(&global, "fetch").dyn_into()?;
    fetch
        .call2(&global, &JsValue::from_str(url), &init)?
        .dyn_into()
}

async fn answer(sent: Result<Promise, JsValue>) -> Result<CreateAnswer, JsValue> {
    let (response, body) = read(sent).await?;
    Ok(CreateAnswer::read(response.status(), body.as_ref()))
}

/// A response and its JSON.
pub(crate) async fn read(
    sent: Result<Promise, JsValue>,
) -> Result<(Response, Option<js::Parsed>), JsValue> {
    let response: Response = JsFuture::from(sent?).await?.unchecked_into();
    let body = JsFuture::from(response.text()?).await?;
    let body = js::Parsed::parse(&body.as_string().unwrap_or_default());
    Ok((response, body))
}
