//! Requests with a key, to routes or to a server.

use std::sync::Arc;

use axum::{
    extract::{FromRef, FromRequestParts as _},
    http::{Method, Request},
};
use colloquy_accounts::{
    Accounts,
    quotas::{Quota, QuotaCaller},
};
use colloquy_http::ApiError;
use futures_util::future::BoxFuture;
use reqwest::multipart::Form;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::Answer;

/// The admin key of tests.
pub const ADMIN_KEY: &str = "admin-key-of-the-tests";

/// The body of a request.
#[derive(Debug)]
pub enum TestBody {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// A form, which may have files.
    Form(Form),
    /// The fields of a form without files, as a page sends them.
    Fields(String),
}

/// What answers requests.
pub trait Answers: Send + Sync {
    /// Answers a request with a key.
    fn answer(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: TestBody,
    ) -> BoxFuture<'static, Answer>;
}

/// Asks routes, or a server, for what the API has; cheap to clone.
#[derive(Clone)]
pub struct TestClient(Arc<dyn Answers>);

/// A partner and its first key.
#[derive(Debug, Clone)]
pub struct TestPartner {
    /// The identifier.
    pub id: String,
    /// The key.
    pub key: String,
}

/// A quota and its key.
#[derive(Debug, Clone)]
pub struct TestQuota {
    /// Where the API has it.
    pub path: String,
    /// The key.
    pub key: String,
}

impl TestQuota {
    /// The quota as handlers with this state get it.
    pub async fn caller<S>(&self, state: &S) -> Result<Arc<Quota>, ApiError>
    where
        S: Send + Sync,
        Accounts: FromRef<S>,
    {
        let request = Request::get("/").header("x-api-key", &self.key);
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let caller = QuotaCaller::from_request_parts(&mut parts, state).await;
        caller.map(|QuotaCaller(quota)| quota)
    }
}

impl TestClient {
    /// A client of whatever answers.
    pub fn new(answers: impl Answers + 'static) -> Self {
        Self(Arc::new(answers))
    }

    /// Sends a request with a key and, unless it is null, a JSON body.
    pub async fn call(&self, key: &str, method: Method, path: &str, body: Value) -> Answer {
        let body = match body {
            Value::Null => TestBody::Empty,
            body => TestBody::Json(body),
        };
        self.0.answer(key, method, path, body).await
    }

    /// Sets how many bytes a partner may store.
    pub async fn limit_storage(&self, partner: &str, bytes: u64) {
        let limited = json!({"settings": {"storage_bytes": bytes}});
        let path = format!("/api/partners/{partner}");
        self.put(ADMIN_KEY, &path, limited).await.expect(200);
    }

    /// Sends a form, which may have files.
    pub async fn form(&self, key: &str, method: Method, path: &str, form: Form) -> Answer {
        self.0.answer(key, method, path, TestBody::Form(form)).await
    }

    /// Sends the fields of a form without files.
    pub async fn fields(
        &self,
        key: &str,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut body = Serializer::new(String::new());
        body.extend_pairs(fields);
        let body = TestBody::Fields(body.finish());
        self.0.answer(key, method, path, body).await
    }

    /// `GET` with a key.
    pub async fn get(&self, key: &str, path: &str) -> Answer {
        self.call(key, Method::GET, path, Value::Null).await
    }

    /// `POST` of JSON with a key.
    pub async fn post(&self, key: &str, path: &str, body: Value) -> Answer {
        self.call(key, Method::POST, path, body).await
    }

    /// `PUT` of JSON with a key.
    pub async fn put(&self, key: &str, path: &str, body: Value) -> Answer {
        self.call(key, Method::PUT, path, body).await
    }

    /// `DELETE` with a key.
    pub async fn delete(&self, key: &str, path: &str) -> Answer {
        self.call(key, Method::DELETE, path, Value::Null).await
    }

    /// Makes a partner.
    pub async fn partner(&self, id: &str) -> TestPartner {
        let made = self
            .post(ADMIN_KEY, &format!("/api/partners/{id}"), json!({}))
            .await
            .expect(201);
        TestPartner {
            id: id.to_owned(),
            key: made["api_key"].as_str().expect("a key").to_owned(),
        }
    }

    /// Makes the partners `acme` and `other`, each with the character `ada`.
    pub async fn acme_and_other(&self) -> (TestPartner, TestPartner) {
        let (acme, other) = (self.partner("acme").await, self.partner("other").await);
        for partner in [&acme, &other] {
            let parameters = json!({"ship": "a boat"});
            self.character(
                partner,
                "ada",
                "You are Ada, a pilot of {{ ship }}.",
                parameters,
            )
            .await;
        }
        (acme, other)
    }

    /// Makes a key of a partner; `body` as the interface takes it.
    pub async fn key(&self, partner: &str, body: Value) -> Value {
        self.post(ADMIN_KEY, &format!("/api/keys/{partner}"), body)
            .await
            .expect(201)
    }

    /// Makes a quota of a partner; `body` as the interface takes it.
    pub async fn quota(&self, partner: &TestPartner, body: Value) -> TestQuota {
        let path = format!("/api/quotas/{}", partner.id);
        let made = self.post(&partner.key, &path, body).await.expect(201);
        let id = made["id"].as_str().expect("an id");
        TestQuota {
            path: format!("{path}/{id}"),
            key: made["api_key"].as_str().expect("a key").to_owned(),
        }
    }

    /// Saves a character.
    pub async fn character(
        &self,
        partner: &TestPartner,
        name: &str,
        personality: &str,
        parameters: Value,
    ) -> Value {
        let body = json!({"name": name, "personality": personality, "parameters": parameters});
        self.post(
            &partner.key,
            &format!("/api/characters/{}", partner.id),
            body,
        )
        .await
        .expect(201)
    }
}
