//! Files and vector stores: `{base}/files` and `{base}/vector_stores`.

use bytes::Bytes;
use colloquy_base::json;
use colloquy_config::VectorstoreConfig;
use futures_util::TryStream;
use reqwest::{
    Body, Method, Response, StatusCode,
    multipart::{Form, Part},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

use super::{CONNECT_TIMEOUT, MAX_ANSWER_BYTES, Refusal, Server};
use crate::{ProviderError, ProviderErrorKind};

/// What the service calls it in failures.
const NAME: &str = "the vector store";
/// What files are for.
const PURPOSE: &str = "assistants";
/// How many entries a page of a list has.
const PAGE: u32 = 100;
/// How many entries of a page are told that are meant: there is one, unless something went wrong.
const MOST_FOUND: usize = 10;
/// The longest id of a server.
const MAX_ID_BYTES: usize = 200;
/// The field of a vector store's metadata that says whose it is.
const TAG: &str = "colloquy_knowledge_base";

/// The vector stores of an OpenAI-compatible server.
#[derive(Debug)]
pub struct VectorStore {
    server: Server,
}

/// A file to upload.
#[derive(Debug)]
pub struct NewFile<S> {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its content.
    pub content: S,
}

/// What is known of a file in a vector store, by which searches can be narrowed down; up to 512 characters each.
#[derive(Debug, Clone, Serialize)]
pub struct FileAttributes {
    /// The document's id.
    pub document_id: String,
    /// Its name.
    pub name: String,
    /// The name of its folder.
    pub folder: String,
    /// The name of its knowledge base.
    pub knowledge_base: String,
    /// The SHA-256 of the content.
    pub sha256: String,
}

/// What is meant on a page of a list.
#[derive(Debug)]
pub struct Found {
    /// What the server calls it, newest first.
    pub ids: Vec<String>,
    /// What the page ends with; `None` when the rest is not of interest.
    pub next: Option<String>,
}

/// How far a file of a vector store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    /// It is not searched yet.
    Running,
    /// It is searched.
    Completed,
    /// It is not searched, for a reason that the server names by a short code.
    Failed(String),
}

#[derive(Deserialize)]
struct Object {
    id: String,
}

#[derive(Deserialize)]
struct FileObject {
    id: String,
    filename: Option<String>,
    created_at: i64,
}

#[derive(Deserialize)]
struct StoreObject {
    id: String,
    created_at: i64,
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Deserialize)]
struct AttachedFile {
    status: String,
    last_error: Option<IndexFailure>,
}

#[derive(Deserialize)]
struct IndexFailure {
    code: Option<String>,
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
}

/// An entry of a list, newest first.
trait Listed: DeserializeOwned {
    fn id(&self) -> &str;
    fn created_at(&self) -> i64;
}

impl Listed for FileObject {
    fn id(&self) -> &str {
        &self.id
    }

    fn created_at(&self) -> i64 {
        self.created_at
    }
}

impl Listed for StoreObject {
    fn id(&self) -> &str {
        &self.id
    }

    fn created_at(&self) -> i64 {
        self.created_at
    }
}

impl VectorStore {
    /// The server of these settings; `None` without a base URL.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(config: &VectorstoreConfig) -> anyhow::Result<Option<Self>> {
        let name = NAME.to_owned();
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            Some(&name),
            CONNECT_TIMEOUT,
        )?;
        Ok(server.map(|server| Self { server }))
    }

    /// Makes a vector store and gives its id. It can be found by the tag.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn create(&self, name: &str, tag: &str) -> Result<String, ProviderError> {
        let body = serde_json::json!({"name": name, "metadata": {TAG: tag}});
        let request = self.server.post("vector_stores")?.json(&body);
        let made: Object = self.read(self.server.send(request).await?).await?;
        self.checked(made.id)
    }

    /// The vector stores with this tag on a page of the list, of those made since a time in seconds since 1970; `after` what the page before
    /// ends with.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn find(
        &self,
        tag: &str,
        since: i64,
        after: Option<&str>,
    ) -> Result<Found, ProviderError> {
        let is_it = |store: &StoreObject| {
            let metadata = store.metadata.as_ref();
            let own = metadata.and_then(|metadata| metadata.get(TAG)?.as_str());
            own == Some(tag)
        };
        self.list("vector_stores", &[], since, after, is_it).await
    }

    /// Whether there is such a vector store.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn is_there(&self, store: &str) -> Result<bool, ProviderError> {
        let found = self.ask(Method::GET, &["vector_stores", store]).await?;
        Ok(found.is_some())
    }

    /// Deletes a vector store; its files stay.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn delete(&self, store: &str) -> Result<(), ProviderError> {
        self.ask(Method::DELETE, &["vector_stores", store]).await?;
        Ok(())
    }

    /// Uploads a file and gives its id.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn upload<S>(&self, file: NewFile<S>) -> Result<String, ProviderError>
    where
        S: TryStream<Ok = Bytes> + Send + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let unwritable = |_| {
            self.server
                .error(ProviderErrorKind::Misconfigured, "no file can be sent")
        };
        let content = Body::wrap_stream(file.content);
        let part = Part::stream_with_length(content, file.bytes)
            .file_name(file.name)
            .mime_str("text/markdown")
            .map_err(unwritable)?;
        let form = Form::new().text("purpose", PURPOSE).part("file", part);
        let request = self.server.post("files")?.multipart(form);
        let made: Object = self.read(self.server.send(request).await?).await?;
        self.checked(made.id)
    }

    /// The files of this name on a page of the list, of those uploaded since a time in seconds since 1970; `after` what the page before ends
    /// with.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn find_files(
        &self,
        name: &str,
        since: i64,
        after: Option<&str>,
    ) -> Result<Found, ProviderError> {
        let is_it = |file: &FileObject| file.filename.as_deref() == Some(name);
        let query = [("purpose", PURPOSE)];
        self.list("files", &query, since, after, is_it).await
    }

    /// Deletes a file, if it is there.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn delete_file(&self, file: &str) -> Result<(), ProviderError> {
        self.ask(Method::DELETE, &["files", file]).await?;
        Ok(())
    }

    /// Has a file searched; `None` when there is no such file or vector store.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn attach(
        &self,
        store: &str,
        file: &str,
        attributes: &FileAttributes,
    ) -> Result<Option<IndexState>, ProviderError> {
        let url = self.url(&["vector_stores", store, "files"])?;
        let body = serde_json::json!({"file_id": file, "attributes": attributes});
        let request = self.server.authorized(self.server.http.post(url));
        let response = found(self.server.send(request.json(&body)).await)?;
        self.state_of(response).await
    }

    /// How far a file of a vector store is; `None` when it is not there.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn state(
        &self,
        store: &str,
        file: &str,
    ) -> Result<Option<IndexState>, ProviderError> {
        let path = ["vector_stores", store, "files", file];
        let response = self.ask(Method::GET, &path).await?;
        self.state_of(response).await
    }

    /// Has a file searched no more, if it is.
    ///
    /// # Errors
    /// The server's failure.
    pub async fn detach(&self, store: &str, file: &str) -> Result<(), ProviderError> {
        let path = ["vector_stores", store, "files", file];
        self.ask(Method::DELETE, &path).await?;
        Ok(())
    }

    /// Whether the server answers and takes the key.
    ///
    /// # Errors
    /// When it does not.
    pub async fn check(&self) -> Result<(), ProviderError> {
        let mut url = self.url(&["vector_stores"])?;
        url.query_pairs_mut().append_pair("limit", "1");
        let request = self.server.authorized(self.server.http.get(url));
        self.server.send(request).await?;
        Ok(())
    }

    async fn state_of(
        &self,
        response: Option<Response>,
    ) -> Result<Option<IndexState>, ProviderError> {
        let Some(response) = response else {
            return Ok(None);
        };
        let attached: AttachedFile = self.read(response).await?;
        Ok(Some(match attached.status.as_str() {
            "completed" => IndexState::Completed,
            status @ ("failed" | "cancelled") => {
                let code = attached.last_error.and_then(|error| error.code);
                IndexState::Failed(short(code.as_deref().unwrap_or(status)))
            }
            // `in_progress`, or how else a server calls that.
            _ => IndexState::Running,
        }))
    }

    /// Those entries of a page of a list that are meant, newest first, of those made since a time in seconds since 1970.
    async fn list<T: Listed>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        since: i64,
        after: Option<&str>,
        is_meant: impl Fn(&T) -> bool,
    ) -> Result<Found, ProviderError> {
        let mut url = self.url(&[path])?;
        url.query_pairs_mut()
            .extend_pairs(query)
            .append_pair("order", "desc")
            .append_pair("limit", &PAGE.to_string());
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let request = self.server.authorized(self.server.http.get(url));
        let page: List<T> = self.read(self.server.send(request).await?).await?;
        let last = page.data.last();
        let is_old = last.is_none_or(|last| last.created_at() < since);
        let next = last.map(|last| last.id().to_owned());
        // A server that does not know the cursor sends the same page for ever.
        let is_last = is_old || !page.has_more || next.as_deref() == after;
        let new = page.data.into_iter().filter(|it| it.created_at() >= since);
        let ids = new.filter(&is_meant).take(MOST_FOUND);
        let ids = ids.map(|it| self.checked(it.id().to_owned()));
        Ok(Found {
            ids: ids.collect::<Result<_, _>>()?,
            next: next.filter(|_| !is_last),
        })
    }

    /// Asks for a thing that may not be there.
    async fn ask(&self, method: Method, path: &[&str]) -> Result<Option<Response>, ProviderError> {
        let request = self.server.http.request(method, self.url(path)?);
        found(self.server.send(self.server.authorized(request)).await)
    }

    /// An address below the base URL; the parts may hold anything.
    fn url(&self, path: &[&str]) -> Result<Url, ProviderError> {
        let mut url = self.server.base.clone();
        let unfit = || {
            let message = "the base URL takes no path behind it";
            self.server.error(ProviderErrorKind::Misconfigured, message)
        };
        url.path_segments_mut()
            .map_err(|()| unfit())?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, ProviderError> {
        let body = self.server.read(response, MAX_ANSWER_BYTES).await?;
        json::read(&body).map_err(|_| self.malformed())
    }

    /// An id of the server, which goes into addresses and rows.
    fn checked(&self, id: String) -> Result<String, ProviderError> {
        let is_sound = (1..=MAX_ID_BYTES).contains(&id.len())
            && !matches!(id.as_str(), "." | "..")
            && id.bytes().all(|byte| byte.is_ascii_graphic());
        is_sound.then_some(id).ok_or_else(|| self.malformed())
    }

    fn malformed(&self) -> ProviderError {
        let message = "an answer that is not understood";
        self.server.error(ProviderErrorKind::Malformed, message)
    }
}

/// A response, or `None` when the server has no such thing.
fn found(answer: Result<Response, Refusal>) -> Result<Option<Response>, ProviderError> {
    match answer {
        Ok(response) => Ok(Some(response)),
        Err(Refusal {
            status: Some(StatusCode::NOT_FOUND),
            ..
        }) => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// A code of a server, which people read: letters, digits and underscores.
fn short(code: &str) -> String {
    let known = code
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_');
    known.take(60).collect()
}
