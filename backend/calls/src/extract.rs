//! How the body of `POST /v2/calls` is read: JSON, URL-encoded form or multipart form, the same fields afterwards.

use axum::{
    body::Body,
    extract::{FromRef, FromRequest, Multipart, Request},
    http::{StatusCode, header::CONTENT_TYPE},
};
use colloquy_base::json;
use colloquy_http::{ApiError, extract::body_bytes};
use serde_json::Value;

use super::request::{CreateCall, Fields};
use crate::Calls;

impl<S: Send + Sync> FromRequest<S> for CreateCall
where
    Calls: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let fields = read(request).await?;
        let call = Self::parse(&fields)?;
        if let Some(url) = &call.webhook {
            // A name is checked when it is resolved, for every attempt anew; a literal address can be refused now.
            Calls::from_ref(state)
                .webhooks
                .fetcher
                .check(url, true)
                .map_err(|error| ApiError::invalid("on_completion_webhook", error.to_string()))?;
        }
        Ok(call)
    }
}

async fn read(request: Request) -> Result<Fields, ApiError> {
    let (parts, body) = request.into_parts();
    let content_type = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|value| value.trim().to_ascii_lowercase())
        .unwrap_or_default();
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = body_bytes(whole).await?;
    match content_type.as_str() {
        "application/json" => Ok(json::object(&bytes)?),
        "application/x-www-form-urlencoded" => {
            let mut fields = Fields::new();
            for (name, value) in url::form_urlencoded::parse(&bytes) {
                add(&mut fields, &name, value.into_owned())?;
            }
            Ok(fields)
        }
        "multipart/form-data" => multipart(Request::from_parts(parts, Body::from(bytes))).await,
        _ => Err(malformed(
            "send application/json, application/x-www-form-urlencoded or multipart/form-data",
        )),
    }
}

async fn multipart(request: Request) -> Result<Fields, ApiError> {
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|error| malformed(error.body_text()))?;
    let mut fields = Fields::new();
    while let Some(field) = form
        .next_field()
        .await
        .map_err(|error| malformed(error.body_text()))?
    {
        let name = field.name().unwrap_or_default().to_owned();
        let text = field
            .text()
            .await
            .map_err(|error| ApiError::invalid(&name, error.body_text()))?;
        add(&mut fields, &name, text)?;
    }
    Ok(fields)
}

fn add(fields: &mut Fields, name: &str, value: String) -> Result<(), ApiError> {
    match fields.insert(name.to_owned(), Value::String(value)) {
        None => Ok(()),
        Some(_) => Err(ApiError::invalid(name, "is given twice")),
    }
}

fn malformed(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_parameters", message)
}
