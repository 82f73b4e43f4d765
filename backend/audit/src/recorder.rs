//! Records the changes of requests: an entry is stored once the principal is known, and completed with the response.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{
    body::{Body, to_bytes},
    extract::{FromRequestParts as _, MatchedPath, RawPathParams, Request, State},
    http::{StatusCode, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use colloquy_accounts::{ChangeRecorder, Credential, Principal, RecordedChange};
use colloquy_http::{ApiError, Arrival};
use colloquy_store::StoreError;
use http_body::Body as _;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::{
    Audit,
    operations::{self, Operation, Subject},
    store::{self, NewEntry},
};

/// The longest value of a parameter that is stored, in bytes.
pub(crate) const MOST_BYTES: usize = 120;
/// Delay before a client retries whose change could not be recorded.
const RETRY: Duration = Duration::from_secs(10);
/// The longest response that is searched for the name of a resource that it created.
const MOST_RESPONSE_BYTES: u64 = 256 * 1024;

/// The change of a request that is recorded.
#[derive(Debug)]
struct Recorder {
    audit: Audit,
    operation: &'static Operation,
    /// The partner that the path or the query names.
    partner: Option<String>,
    subject: Option<String>,
    /// The parameters of the path, without the partner.
    parameters: BTreeMap<String, String>,
    request_id: String,
    /// The id of the entry, once it is stored.
    entry: OnceCell<String>,
}

/// Gives requests whose changes are recorded a recorder, and completes its entry with the response.
pub(crate) async fn record(State(audit): State<Audit>, request: Request, next: Next) -> Response {
    let template = request.extensions().get::<MatchedPath>();
    let operation =
        template.and_then(|template| operations::recorded(request.method(), template.as_str()));
    let Some(operation) = operation else {
        return next.run(request).await;
    };
    let (mut parts, body) = request.into_parts();
    let recorder = Arc::new(Recorder::new(audit, operation, &mut parts).await);
    parts
        .extensions
        .insert(RecordedChange(Arc::<Recorder>::clone(&recorder) as _));
    let response = next.run(Request::from_parts(parts, body)).await;
    recorder.complete(response).await
}

impl Recorder {
    async fn new(audit: Audit, operation: &'static Operation, parts: &mut Parts) -> Self {
        let mut given: BTreeMap<String, String> = BTreeMap::new();
        let in_query =
            matches!(operation.subject, Subject::Parameter(name) if !operation.path.contains(name));
        let query = parts.uri.query().filter(|_| in_query).unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if matches!(&*name, "partner" | "kb") {
                given.insert(name.into_owned(), bounded(&value));
            }
        }
        // Parameters that are no text have a response of their own.
        if let Ok(path) = RawPathParams::from_request_parts(parts, &()).await {
            for (name, value) in &path {
                given.insert(name.to_owned(), bounded(value));
            }
        }
        let subject = match operation.subject {
            Subject::Parameter(name) => {
                given
                    .get(name)
                    .map(|given| match operation.resource.owner_table() {
                        Some(_) => canonical(given),
                        None => given.clone(),
                    })
            }
            Subject::Response(_) | Subject::Unnamed => None,
        };
        let arrival = parts.extensions.get::<Arrival>();
        Self {
            partner: given.remove("partner"),
            subject,
            parameters: given,
            request_id: arrival.map(|it| it.id.clone()).unwrap_or_default(),
            entry: OnceCell::new(),
            audit,
            operation,
        }
    }

    /// Completes the entry, and returns the response. The entry of a request that was refused is removed: keys could fill the log with refusals.
    async fn complete(&self, response: Response) -> Response {
        let Some(id) = self.entry.get().cloned() else {
            return response;
        };
        let status = response.status();
        let (response, created) = match self.operation.subject {
            Subject::Response(field) if status.is_success() => created(response, field).await,
            _ => (response, None),
        };
        let (audit, operation) = (self.audit.clone(), self.operation);
        // Goes on if the client goes away.
        let completed = self.audit.kernel.tasks.spawn(async move {
            if let Err(error) = complete(&audit, &id, operation, status, created).await {
                audit
                    .store
                    .complain("completing an entry of the audit log", &error);
            }
        });
        drop(completed.await);
        response
    }
}

async fn complete(
    audit: &Audit,
    id: &str,
    operation: &Operation,
    status: StatusCode,
    created: Option<String>,
) -> Result<(), StoreError> {
    let db = audit.store.db();
    match is_refusal(operation, status) {
        true => store::remove(db, id).await,
        false => store::complete(db, id, status.as_u16(), created.as_deref()).await,
    }
}

/// Returns true if a response says that nothing was changed. Operations of several transactions may have committed some of them before another one was
/// refused; what they are asked is refused before the first.
fn is_refusal(operation: &Operation, status: StatusCode) -> bool {
    if operation.is_in_parts() {
        return matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
                | StatusCode::TOO_MANY_REQUESTS
        );
    }
    !status.is_success() && !status.is_server_error()
}

#[async_trait]
impl ChangeRecorder for Recorder {
    async fn record(&self, principal: &Principal, credential: Credential) -> Result<(), ApiError> {
        let own = principal.own_tenant();
        let entry = NewEntry {
            operation: self.operation,
            principal,
            credential,
            // Nobody writes into the log of another partner.
            partner: match &own {
                Some(own) => Some(own.partner().as_str()),
                None => self.partner.as_deref(),
            },
            subject: self.subject.as_deref(),
            parameters: &self.parameters,
            request_id: &self.request_id,
        };
        let stored = self.entry.get_or_try_init(|| async {
            let id = self.audit.clock.new_id().simple().to_string();
            let inserted = store::insert(&self.audit, &id, &entry).await;
            inserted.map(|()| id).map_err(not_recorded)
        });
        stored.await?;
        Ok(())
    }
}

/// Returns the error of a change that is refused since it cannot be recorded.
fn not_recorded(error: StoreError) -> ApiError {
    let error = ApiError::from(error);
    match error.status {
        StatusCode::INTERNAL_SERVER_ERROR => ApiError {
            source: error.source,
            ..ApiError::unavailable("The change cannot be recorded in the audit log", RETRY)
        },
        _ => error,
    }
}

/// Returns an id as it is stored: paths may have it behind the path of its resource, and in any form of a UUID.
fn canonical(given: &str) -> String {
    let id = given.rsplit('/').next().unwrap_or(given);
    Uuid::parse_str(id).map_or_else(|_| given.to_owned(), |id| id.to_string())
}

/// Returns a text of [`MOST_BYTES`] at most.
pub(crate) fn bounded(text: &str) -> String {
    text.get(..text.floor_char_boundary(MOST_BYTES))
        .unwrap_or_default()
        .to_owned()
}

/// Returns the response, and a text field of the object that its body is.
async fn created(response: Response, field: &str) -> (Response, Option<String>) {
    let size = response.body().size_hint().exact();
    if size.is_none_or(|size| size > MOST_RESPONSE_BYTES) {
        return (response, None);
    }
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => {
            let object: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
            let name = object
                .as_ref()
                .and_then(|object| object.get(field)?.as_str());
            let name = name.map(bounded);
            (Response::from_parts(parts, Body::from(bytes)), name)
        }
        Err(error) => (ApiError::internal(error).into_response(), None),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    #[tokio::test]
    async fn the_name_of_what_was_created_is_read_from_the_response() {
        let body = r#"{"name":"Ada","id":7}"#;
        let answer = || Response::new(Body::from(body));
        let (response, name) = created(answer(), "name").await;
        assert_eq!(name.as_deref(), Some("Ada"));
        let read = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(read, body);
        assert_eq!(created(answer(), "id").await.1, None);
        let (response, name) = created(Response::new(Body::from("no JSON")), "name").await;
        let read = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!((name, &*read), (None, b"no JSON".as_slice()));
    }

    #[test]
    fn ids_are_stored_in_one_form() {
        let id = "01a22ef0-e833-7113-9769-c7ac0fa0013a";
        for given in [
            id.to_owned(),
            id.to_uppercase(),
            id.replace('-', ""),
            format!("/v2/calls/{id}"),
        ] {
            assert_eq!(canonical(&given), id, "{given}");
        }
        assert_eq!(canonical("a/b"), "a/b");
    }

    #[test]
    fn operations_in_parts_are_refused_only_before_the_first() {
        let recorded = |path| operations::recorded(&Method::POST, path).unwrap();
        let bulk = recorded("/api/bulk/move/{partner}/{kb}");
        let single = recorded("/api/keys/{partner}");
        for (status, of_bulk, of_single) in [
            (StatusCode::OK, false, false),
            (StatusCode::BAD_REQUEST, true, true),
            (StatusCode::NOT_FOUND, false, true),
            (StatusCode::CONFLICT, false, true),
            (StatusCode::INTERNAL_SERVER_ERROR, false, false),
        ] {
            assert_eq!(is_refusal(bulk, status), of_bulk, "{status}");
            assert_eq!(is_refusal(single, status), of_single, "{status}");
        }
    }

    #[test]
    fn names_are_bounded_at_a_character() {
        assert_eq!(bounded("short"), "short");
        let long = format!("a{}", "\u{e9}".repeat(MOST_BYTES));
        assert_eq!(bounded(&long).len(), MOST_BYTES - 1);
    }
}
