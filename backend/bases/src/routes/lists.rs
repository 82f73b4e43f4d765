//! `/api/kb-list`, `/api/folder-list` and `/api/document-list`.

use axum::{Json, extract::State, http::HeaderMap};
use colloquy_accounts::PartnerTenant;
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, ApiPath, Listing, Page, PageQuery, separated};
use colloquy_store::Order;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, allowed, base_of,
    list_views::{DocumentPage, FolderPage, KnowledgeBasePage},
};
use crate::{
    Bases,
    base::KnowledgeBase,
    document::DocumentStatus,
    folder::{self, Kind},
    lists::{self, SortKey, Sorting},
    store::{self, BaseFilter, DocumentFilter, FolderFilter},
};

/// The direction of a list.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ListOrder)]
pub(super) enum ListOrder {
    /// Smallest first.
    Asc,
    /// Largest first.
    Desc,
}

impl From<ListOrder> for Order {
    fn from(order: ListOrder) -> Self {
        match order {
            ListOrder::Asc => Self::Ascending,
            ListOrder::Desc => Self::Descending,
        }
    }
}

/// The key that documents are sorted by.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DocumentSort {
    /// Name in lower case, by code points.
    #[default]
    Name,
    /// Spend. Documents of unknown cost rank below all known costs, and documents without priced requests below those.
    Price,
    /// `size_bytes`.
    Size,
    /// `tokens`.
    Tokens,
    /// `updated_at`.
    Changed,
    /// `state`, by its name.
    State,
}

impl From<DocumentSort> for SortKey {
    fn from(sort: DocumentSort) -> Self {
        match sort {
            DocumentSort::Name => Self::Name,
            DocumentSort::Price => Self::Price,
            DocumentSort::Size => Self::Size,
            DocumentSort::Tokens => Self::Tokens,
            DocumentSort::Changed => Self::Changed,
            DocumentSort::State => Self::State,
        }
    }
}

/// The key that folders are sorted by.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ListSort {
    /// Name in lower case, by code points.
    #[default]
    Name,
    /// Cost, as `price_basis` says.
    Price,
    /// `size_bytes`.
    Size,
}

impl From<ListSort> for SortKey {
    fn from(sort: ListSort) -> Self {
        match sort {
            ListSort::Name => Self::Name,
            ListSort::Price => Self::Price,
            ListSort::Size => Self::Size,
        }
    }
}

/// The key that knowledge bases are sorted by.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BaseSort {
    /// Name in lower case, by code points.
    #[default]
    Name,
    /// Cost, as `price_basis` says.
    Price,
    /// `size_bytes`.
    Size,
    /// The used and reserved part of the budget's limit of which most is used or reserved; bases without limits come last.
    Limit,
}

impl From<BaseSort> for SortKey {
    fn from(sort: BaseSort) -> Self {
        match sort {
            BaseSort::Name => Self::Name,
            BaseSort::Price => Self::Price,
            BaseSort::Size => Self::Size,
            BaseSort::Limit => Self::Limit,
        }
    }
}

/// Sorting and filters of documents.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DocumentQuery {
    /// The key that the documents are sorted by; `name` by default.
    #[param(inline)]
    sort: Option<DocumentSort>,
    /// The direction: `asc` by default for `name` and `state`, `desc` for numbers and times. Equal keys are sorted by ascending id.
    #[param(inline)]
    order: Option<ListOrder>,
    /// Text that the names contain, case-insensitive, 1 to 200 characters. No character is a wildcard.
    q: Option<String>,
    /// Name of the folder that has the documents.
    folder: Option<String>,
    /// States, separated by commas: `empty`, `digitizing`, `digitized`, `rewriting`, `rewritten`, `embedding`, `ready`, `blocked`, `failed`,
    /// `delete_pending`.
    #[param(example = "failed,blocked")]
    state: Option<String>,
}

/// Sorting and filters of folders.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FolderQuery {
    /// The key that the folders are sorted by; `name` by default.
    #[param(inline)]
    sort: Option<ListSort>,
    /// The direction: `asc` by default for `name`, `desc` for numbers. Equal keys are sorted by ascending id.
    #[param(inline)]
    order: Option<ListOrder>,
    /// Text that the names contain, case-insensitive, 1 to 200 characters. No character is a wildcard.
    q: Option<String>,
    /// The type of the folders.
    #[param(inline)]
    r#type: Option<Kind>,
}

/// Sorting and filters of knowledge bases.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct KnowledgeBaseQuery {
    /// The key that the knowledge bases are sorted by; `name` by default.
    #[param(inline)]
    sort: Option<BaseSort>,
    /// The direction: `asc` by default for `name`, `desc` for numbers. Equal keys are sorted by ascending id.
    #[param(inline)]
    order: Option<ListOrder>,
    /// Text that the names contain, case-insensitive, 1 to 200 characters. No character is a wildcard.
    q: Option<String>,
    /// Only bases with documents in one of these states, separated by commas: `active` (a step is queued or running), `blocked`, `failed`.
    #[param(example = "failed,blocked")]
    state: Option<String>,
}

fn sorting(key: impl Into<SortKey>, order: Option<ListOrder>) -> Sorting {
    Sorting::new(key.into(), order.map(Order::from))
}

/// Returns a page of ids, the cursor behind it, and the header that leads there.
fn listed(
    page: &Page,
    sorting: Sorting,
    rows: Vec<store::KeyedId>,
) -> (Vec<String>, Option<String>, HeaderMap) {
    let listed = page.of(rows, |row| sorting.cursor(row));
    let ids = listed.entries.into_iter().map(|row| row.id).collect();
    (ids, listed.next_cursor, listed.links)
}

fn states(text: Option<&str>) -> Result<Vec<DocumentStatus>, InvalidField> {
    let mut states: Vec<DocumentStatus> = separated("state", text, "states of documents")?;
    states.sort_unstable_by_key(|state| state.as_str());
    Ok(states)
}

/// Returns the filter of the documents of a base that a query names.
pub(super) async fn document_filter(
    bases: &Bases,
    base: &KnowledgeBase,
    name: Option<String>,
    folder: Option<&str>,
    state: Option<&str>,
) -> Result<DocumentFilter, ApiError> {
    let name = lists::name_filter(name)?;
    let states = states(state)?;
    let folder = match folder {
        Some(folder) => Some(folder::find(bases, base, folder).await?.id),
        None => None,
    };
    Ok(DocumentFilter {
        base: base.id.clone(),
        name,
        folder,
        states,
    })
}

/// Lists the documents of a knowledge base, sorted and filtered by the server.
///
/// `total` and `sums` cover all documents that pass the filters, not only the page; both are null on later pages. A document that changes while
/// pages are read may be missing or appear twice.
#[utoipa::path(
    get, path = "/api/document-list/{partner}/{kb}", operation_id = "page_documents", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), DocumentQuery, PageQuery),
    responses(
        (status = 200, body = DocumentPage),
        (status = 400, description = "A parameter is invalid or unknown, or the cursor belongs to a list that is sorted differently"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the folder was not found"),
    )
)]
pub(super) async fn documents(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    Listing { filter, page }: Listing<DocumentQuery>,
) -> Result<(HeaderMap, Json<DocumentPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let sorting = sorting(filter.sort.unwrap_or_default(), filter.order);
    let keyset = sorting.keyset(page.after(), page.rows())?;
    let (folder, state) = (filter.folder.as_deref(), filter.state.as_deref());
    let filter = document_filter(&bases, &base, filter.q, folder, state).await?;
    let db = bases.store.db();
    let rows = store::document_keys(db, &filter, sorting.key, sorting.order, &keyset).await?;
    let (ids, next_cursor, links) = listed(&page, sorting, rows);
    let sums = match page.after() {
        None => Some(store::document_sums(db, &filter).await?),
        Some(_) => None,
    };
    let documents = lists::documents(&bases, &ids).await?;
    let view = DocumentPage::new(documents, sums, next_cursor);
    Ok((links, Json(view)))
}

/// Lists the folders of a knowledge base, sorted and filtered by the server.
///
/// `total` and `sums` cover all folders that pass the filters, not only the page; both are null on later pages.
#[utoipa::path(
    get, path = "/api/folder-list/{partner}/{kb}", operation_id = "page_folders", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), FolderQuery, PageQuery),
    responses(
        (status = 200, body = FolderPage),
        (status = 400, description = "A parameter is invalid or unknown, or the cursor belongs to a list that is sorted differently"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
    )
)]
pub(super) async fn folders(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    Listing { filter, page }: Listing<FolderQuery>,
) -> Result<(HeaderMap, Json<FolderPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let sorting = sorting(filter.sort.unwrap_or_default(), filter.order);
    let keyset = sorting.keyset(page.after(), page.rows())?;
    let filter = FolderFilter {
        base: base.id,
        name: lists::name_filter(filter.q)?,
        kind: filter.r#type,
    };
    let db = bases.store.db();
    let rows = store::folder_keys(db, &filter, sorting.key, sorting.order, &keyset).await?;
    let (ids, next_cursor, links) = listed(&page, sorting, rows);
    let folders = lists::folders(&bases, &filter.base, &ids).await?;
    let is_last = next_cursor.is_none();
    let sums = match page.after() {
        None => Some(lists::folder_sums(&bases, &filter, &folders, is_last).await?),
        Some(_) => None,
    };
    let view = FolderPage::new(folders, sums, next_cursor);
    Ok((links, Json(view)))
}

/// Lists the knowledge bases of a partner, sorted and filtered by the server.
///
/// `total` and `sums` cover all knowledge bases that pass the filter, not only the page; both are null on later pages.
#[utoipa::path(
    get, path = "/api/kb-list/{partner}", operation_id = "page_knowledge_bases", tag = "knowledge bases",
    params(("partner" = String, Path), KnowledgeBaseQuery, PageQuery),
    responses(
        (status = 200, body = KnowledgeBasePage),
        (status = 400, description = "A parameter is invalid or unknown, or the cursor belongs to a list that is sorted differently"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
    )
)]
pub(super) async fn knowledge_bases(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    Listing { filter, page }: Listing<KnowledgeBaseQuery>,
) -> Result<(HeaderMap, Json<KnowledgeBasePage>), ApiError> {
    let tenant = allowed(caller)?;
    let sorting = sorting(filter.sort.unwrap_or_default(), filter.order);
    let keyset = sorting.keyset(page.after(), page.rows())?;
    let filter = BaseFilter {
        tenant,
        name: lists::name_filter(filter.q)?,
        unfinished: separated(
            "state",
            filter.state.as_deref(),
            "`active`, `blocked` or `failed`",
        )?,
    };
    let db = bases.store.db();
    let rows = store::base_keys(db, &filter, sorting.key, sorting.order, &keyset).await?;
    let (ids, next_cursor, links) = listed(&page, sorting, rows);
    let listed = lists::bases(&bases, &ids).await?;
    let is_last = next_cursor.is_none();
    let sums = match page.after() {
        None => Some(lists::base_sums(&bases, &filter, &listed, is_last).await?),
        Some(_) => None,
    };
    let view = KnowledgeBasePage::new(listed, sums, next_cursor);
    Ok((links, Json(view)))
}
