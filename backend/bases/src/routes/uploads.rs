//! How documents come in: `POST /api/documents`.

use std::iter;

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_http::{
    ApiError, ApiJson, ApiPath,
    form::{Fields, Form},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    BasePath, FIELD_BYTES, base_of,
    bases::optional,
    documents::{address, source},
    views::DocumentView,
};
use crate::{
    Bases,
    addresses::{self, AddedUrl, AddedUrls},
    base::KnowledgeBase,
    document::{self, ModelTier, Source},
    error::{BaseError, ReceiveError},
    folder::{self, Folder},
    names,
    upload::{self, DocumentOptions, Uploaded},
};

/// The fields of a form that brings a document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct NewDocumentForm {
    /// Where it comes from.
    r#type: Source,
    /// The folder that it goes to.
    folder: String,
    /// The file, when the type is `file`. Its type has to be one of the supported ones, by its name and by its content.
    #[schema(value_type = Option<String>, format = Binary)]
    file: Option<Vec<u8>>,
    /// The address, when the type is `url`: a page, or a file of a supported type.
    url: Option<String>,
    /// The name; when it is left out that of the file, or the title of what is at the address.
    name: Option<String>,
    /// Author or speaker.
    expert_name: Option<String>,
    /// Who brings it.
    user_email: Option<String>,
    /// Whether it is rewritten once its text is there.
    #[schema(default = false)]
    auto_rewrite: Option<bool>,
    /// How much the model may cost.
    #[schema(default = "standard")]
    model_tier: Option<ModelTier>,
    /// Whether its text is its final content.
    #[schema(default = false)]
    use_original_as_rewritten: Option<bool>,
    /// The most characters of its text.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// What came in a form.
struct ParsedForm {
    fields: Fields,
    names: Vec<String>,
    /// Each file with its name, or why it is not taken.
    files: Vec<(String, Result<Uploaded, BaseError>)>,
}

/// Reads a form with so many files at most, which stand in `field`.
async fn parse_form(
    bases: &Bases,
    tenant: &Tenant,
    request: Request,
    field: &str,
    most: usize,
) -> Result<ParsedForm, ApiError> {
    let mut form = Form::of(request)?;
    let mut parsed = ParsedForm {
        fields: Fields::default(),
        names: vec![],
        files: vec![],
    };
    let mut left = FIELD_BYTES * (1 + most);
    while let Some(mut part) = form.next().await? {
        let Some(file_name) = part.file_name.clone() else {
            let name = part.name.clone();
            let text = part.text(left).await?;
            left -= text.len();
            match name.as_str() {
                "names" if most > 1 => parsed.names.push(text),
                _ => parsed.fields.add(name, text)?,
            }
            continue;
        };
        if part.name != field {
            let message = format!("is a file; files go into {field}");
            return Err(ApiError::invalid(part.name, message));
        }
        if parsed.files.len() == most {
            let message = format!("must have at most {most} files");
            return Err(ApiError::invalid(field, message));
        }
        let received = upload::receive(bases, tenant, &file_name, part.pieces()).await;
        let uploaded = match received {
            Ok(uploaded) => Ok(uploaded),
            Err(ReceiveError::Base(error)) => Err(error),
            Err(ReceiveError::Source(error)) => return Err(error),
        };
        match uploaded {
            // What is wrong with one file is nothing to the others.
            Err(BaseError::Refused(_) | BaseError::TooLarge(_)) if most > 1 => {
                part.pass_over().await?;
            }
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        parsed.files.push((file_name, uploaded));
    }
    Ok(parsed)
}

/// How much models may cost.
pub(super) fn model_tier(fields: &mut Fields) -> Result<ModelTier, ApiError> {
    match fields.take("model_tier") {
        None => Ok(ModelTier::default()),
        Some(tier) => ModelTier::try_from(tier)
            .map_err(|_| ApiError::invalid("model_tier", "must be standard or economy")),
    }
}

/// The options of documents that come.
fn options(fields: &mut Fields) -> Result<DocumentOptions, ApiError> {
    let model_tier = model_tier(fields)?;
    Ok(DocumentOptions {
        name: optional(fields.take("name"), |it| names::title("name", it))?,
        expert_name: optional(fields.take("expert_name"), |it| {
            names::title("expert_name", it)
        })?,
        user_email: optional(fields.take("user_email"), |it| {
            names::email("user_email", it)
        })?,
        auto_rewrite: fields.take_bool("auto_rewrite")?.unwrap_or_default(),
        model_tier,
        use_original_as_rewritten: fields
            .take_bool("use_original_as_rewritten")?
            .unwrap_or_default(),
        character_limit: optional(fields.take("character_limit"), positive)?,
    })
}

/// A `character_limit`.
pub(super) fn positive(text: &str) -> Result<u64, ApiError> {
    let limit = text.trim().parse::<u64>().ok();
    limit
        .filter(|limit| *limit > 0 && i64::try_from(*limit).is_ok())
        .ok_or_else(wrong_limit)
}

pub(super) fn wrong_limit() -> ApiError {
    ApiError::invalid("character_limit", "must be an integer of at least 1")
}

/// The folder that a form names.
pub(super) async fn folder_of(
    bases: &Bases,
    base: &KnowledgeBase,
    fields: &mut Fields,
) -> Result<Folder, ApiError> {
    named_folder(bases, base, &fields.require("folder")?).await
}

async fn named_folder(bases: &Bases, base: &KnowledgeBase, name: &str) -> Result<Folder, ApiError> {
    let found = folder::find(bases, base, name).await;
    let missing = |_| ApiError::invalid("folder", "There is no such folder");
    let found = match found {
        Err(error @ BaseError::NotFound(_)) => return Err(missing(error)),
        found => found?,
    };
    Ok(found.require_open()?)
}

/// Brings a file, or an address. Its text is read in the background: `status` says how far that is.
///
/// A file that is not what its name says, is an archive or of a type that is not supported is refused. A document with the same
/// content as another one of the base is taken, and says so (`duplicate_document_ids`).
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}", operation_id = "create_document", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    request_body(content = NewDocumentForm, content_type = "multipart/form-data"),
    responses((status = 201, body = DocumentView), (status = 400), (status = 404), (status = 413), (status = 415))
)]
pub(super) async fn create(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    request: Request,
) -> Result<(StatusCode, Json<DocumentView>), ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let ParsedForm {
        mut fields, files, ..
    } = parse_form(&bases, &tenant, request, "file", 1).await?;
    let source = source(&fields.require("type")?)?;
    let folder = folder_of(&bases, &base, &mut fields).await?;
    let options = options(&mut fields)?;
    let file = files.into_iter().next();
    let made = match source {
        Source::File => {
            fields.finish()?;
            let (_, file) = file.ok_or_else(|| ApiError::invalid("file", "is required"))?;
            upload::add_file(&bases, &tenant, &base, &folder, file?, options).await?
        }
        Source::Url => {
            let url = address(&fields.require("url")?)?;
            fields.finish()?;
            if file.is_some() {
                return Err(ApiError::invalid(
                    "file",
                    "must be left out when the type is url",
                ));
            }
            upload::add_url(&bases, &tenant, &base, &folder, url, options).await?
        }
    };
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// The fields of a form that brings several files.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct NewDocumentsForm {
    /// The folder that they go to.
    folder: String,
    /// The files.
    #[schema(value_type = Vec<String>, format = Binary)]
    files: Vec<Vec<u8>>,
    /// Their names, in the same order; those of the files where they are left out.
    names: Option<Vec<String>>,
    /// Author or speaker.
    expert_name: Option<String>,
    /// Who brings them.
    user_email: Option<String>,
    /// Whether they are rewritten once their texts are there.
    #[schema(default = false)]
    auto_rewrite: Option<bool>,
    /// How much the model may cost.
    #[schema(default = "standard")]
    model_tier: Option<ModelTier>,
    /// Whether their texts are their final contents.
    #[schema(default = false)]
    use_original_as_rewritten: Option<bool>,
    /// The most characters of each text.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// What became of one file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileResult {
    /// The name of the file.
    filename: String,
    /// `success` or `error`.
    status: &'static str,
    /// The document; null where the file was not taken.
    document_id: Option<String>,
    /// Why the file was not taken.
    error: Option<String>,
    /// Other documents of the base with the same content. Empty if the database was not available to look them up.
    duplicate_document_ids: Vec<String>,
}

impl FileResult {
    fn success(filename: String, document_id: String, duplicates: Vec<String>) -> Self {
        Self {
            filename,
            status: "success",
            document_id: Some(document_id),
            error: None,
            duplicate_document_ids: duplicates,
        }
    }

    fn error(filename: String, error: ApiError) -> Self {
        Self {
            filename,
            status: "error",
            document_id: None,
            error: Some(error.message),
            duplicate_document_ids: vec![],
        }
    }
}

/// How many files were taken.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Summary {
    /// All files.
    total: usize,
    /// Those that were taken.
    succeeded: usize,
    /// Those that were not.
    failed: usize,
}

/// What became of files.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileResults {
    /// How many were taken.
    summary: Summary,
    /// Each of them, in the order of the request.
    results: Vec<FileResult>,
}

/// Brings several files. One that is refused leaves the others alone.
///
/// If the database fails once a document is stored, the response is still 200, and each file that is not known to be stored has an error.
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}/files/batch", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    request_body(content = NewDocumentsForm, content_type = "multipart/form-data"),
    responses((status = 200, body = FileResults), (status = 400), (status = 404), (status = 415))
)]
pub(super) async fn create_files(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    request: Request,
) -> Result<Json<FileResults>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let most = bases.config.knowledge.max_batch_files as usize;
    let ParsedForm {
        mut fields,
        names: given,
        files,
    } = parse_form(&bases, &tenant, request, "files", most).await?;
    let folder = folder_of(&bases, &base, &mut fields).await?;
    let common = options(&mut fields)?;
    fields.finish()?;
    if files.is_empty() {
        return Err(ApiError::invalid("files", "is required"));
    }
    if given.len() > files.len() {
        return Err(ApiError::invalid(
            "names",
            "There are more names than files",
        ));
    }
    // All of them before the first file is taken.
    let given = given.into_iter().map(|name| {
        let name = Some(name).filter(|name| !name.trim().is_empty());
        optional(name, |it| names::title("names", it))
    });
    let mut given = given.collect::<Result<Vec<_>, _>>()?.into_iter();
    let mut results = Vec::with_capacity(files.len());
    let mut summary = Summary::default();
    // The database's failure, behind which no file is taken.
    let mut failure: Option<ApiError> = None;
    for (filename, file) in files {
        let name = given.next().flatten();
        let options = DocumentOptions {
            name,
            ..common.clone()
        };
        let made = match (file, failure.clone()) {
            (Ok(_), Some(failure)) => Err(failure),
            (Ok(file), None) => {
                match upload::insert_file(&bases, &tenant, &base, &folder, file, options).await {
                    Err(BaseError::Store(error)) if summary.succeeded > 0 => {
                        let what = "storing the rest of the files of a request";
                        bases.store.complain(what, &error);
                        Err(failure.insert(error.into()).clone())
                    }
                    Err(error @ BaseError::Store(_)) => return Err(error.into()),
                    made => made.map_err(ApiError::from),
                }
            }
            (Err(error), _) => Err(error.into()),
        };
        summary.total += 1;
        let result = match made {
            Ok(id) => {
                summary.succeeded += 1;
                let duplicates = duplicates(&bases, &base, &id).await;
                FileResult::success(filename, id, duplicates)
            }
            Err(error) => {
                summary.failed += 1;
                FileResult::error(filename, error)
            }
        };
        results.push(result);
    }
    Ok(Json(FileResults { summary, results }))
}

/// Returns the duplicates of a document that was just stored; none if they cannot be read.
async fn duplicates(bases: &Bases, base: &KnowledgeBase, document: &str) -> Vec<String> {
    match document::find(bases, base, document).await {
        Ok(found) => found.duplicates,
        // It was deleted meanwhile.
        Err(BaseError::NotFound(_)) => vec![],
        Err(error) => {
            let what = "reading the duplicates of a file that was stored";
            bases.store.complain(what, &error);
            vec![]
        }
    }
}

/// The most addresses of a request.
const MOST_URLS: usize = 1_000;

/// Addresses to be brought.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct UrlsBody {
    /// The folder that they go to.
    folder: String,
    /// The addresses, 1,000 at most.
    #[schema(max_items = 1000)]
    urls: Vec<String>,
    /// Whether their texts are their final contents.
    #[serde(default)]
    use_original_as_rewritten: bool,
    /// Whether they are rewritten once their texts are there.
    #[serde(default)]
    auto_rewrite: bool,
    /// How much the model may cost.
    #[serde(default)]
    model_tier: ModelTier,
    /// Author or speaker.
    expert_name: Option<String>,
    /// Who brings them.
    user_email: Option<String>,
    /// The most characters of each text.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// What became of one address.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UrlResult {
    /// The address.
    url: String,
    /// `success` or `error`.
    status: &'static str,
    /// The document; null where the address was not taken.
    document_id: Option<String>,
    /// Why the address was not taken: `urls[3]: ..` for the fourth.
    error: Option<String>,
    /// Other documents of the base with the same address. Empty if the database was not available to look them up.
    duplicate_document_ids: Vec<String>,
}

/// What became of addresses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UrlResults {
    /// How many were taken.
    summary: Summary,
    /// Each of them, in the order of the request.
    results: Vec<UrlResult>,
}

/// Brings several addresses. What is there is fetched in the background; one that is malformed leaves the others alone.
///
/// If the database fails once documents are stored, the response is still 200, and each address that is not known to be stored has an error.
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}/batch", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = UrlsBody,
    responses((status = 200, body = UrlResults), (status = 400), (status = 404))
)]
pub(super) async fn create_urls(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<UrlsBody>,
) -> Result<Json<UrlResults>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    if !(1..=MOST_URLS).contains(&body.urls.len()) {
        let message = format!("must have 1 to {MOST_URLS} addresses");
        return Err(ApiError::invalid("urls", message));
    }
    let folder = named_folder(&bases, &base, &body.folder).await?;
    let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let character_limit = body.character_limit;
    if character_limit.is_some_and(|limit| limit == 0 || i64::try_from(limit).is_err()) {
        return Err(wrong_limit());
    }
    let common = DocumentOptions {
        name: None,
        expert_name: optional(filled(body.expert_name), |it| {
            names::title("expert_name", it)
        })?,
        user_email: optional(filled(body.user_email), |it| names::email("user_email", it))?,
        auto_rewrite: body.auto_rewrite,
        model_tier: body.model_tier,
        use_original_as_rewritten: body.use_original_as_rewritten,
        character_limit,
    };
    let mut outcomes: Vec<(usize, Result<AddedUrl, ApiError>)> = Vec::new();
    let (mut places, mut urls) = (Vec::new(), Vec::new());
    for (place, url) in body.urls.iter().enumerate() {
        match address(url) {
            Ok(address) => {
                places.push(place);
                urls.push(address);
            }
            Err(error) => outcomes.push((place, Err(error.into()))),
        }
    }
    let added = addresses::add(&bases, &tenant, &base, &folder, &urls, &common).await?;
    outcomes.extend(places.into_iter().zip(outcomes_of(added)));
    outcomes.sort_unstable_by_key(|(place, _)| *place);
    let outcomes = outcomes.into_iter().zip(body.urls);
    let results = outcomes.map(|((place, outcome), url)| UrlResult::new(place, url, outcome));
    Ok(Json(UrlResults::of(results.collect())))
}

/// The outcomes of addresses, in their order. After a failure of the database they do not end: each address behind has that failure.
fn outcomes_of(added: AddedUrls) -> impl Iterator<Item = Result<AddedUrl, ApiError>> {
    let outcomes = added.outcomes.into_iter();
    let outcomes = outcomes.map(|outcome| outcome.map_err(ApiError::from));
    let failure = added.failure.map(ApiError::from);
    let behind = iter::from_fn(move || failure.clone().map(Err));
    outcomes.chain(behind)
}

impl UrlResult {
    /// The outcome of the address at a place in the request.
    fn new(place: usize, url: String, outcome: Result<AddedUrl, ApiError>) -> Self {
        match outcome {
            Ok(added) => Self {
                url,
                status: "success",
                document_id: Some(added.document_id),
                error: None,
                duplicate_document_ids: added.duplicates,
            },
            Err(error) => Self {
                url,
                status: "error",
                document_id: None,
                error: Some(format!("urls[{place}]: {}", error.message)),
                duplicate_document_ids: vec![],
            },
        }
    }
}

impl UrlResults {
    fn of(results: Vec<UrlResult>) -> Self {
        let taken = results.iter().filter(|result| result.document_id.is_some());
        let succeeded = taken.count();
        let summary = Summary {
            total: results.len(),
            succeeded,
            failed: results.len() - succeeded,
        };
        Self { summary, results }
    }
}
