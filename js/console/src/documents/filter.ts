// Sorting, filters and selection of the list of documents: as the address holds them, and as the API takes them.

import { filterOf } from "../knowledge/sorting";

export const DOCUMENT_STATES = [
  "empty", "digitizing", "digitized", "rewriting", "rewritten", "embedding", "ready", "blocked", "failed", "delete_pending",
] as const;
export type DocumentState = (typeof DOCUMENT_STATES)[number];

export const SORT_KEYS = ["name", "state", "size", "tokens", "price", "changed"] as const;
export type SortKey = (typeof SORT_KEYS)[number];
export type Order = "asc" | "desc";

export type DocumentFilter = { sort: SortKey; order: Order; q: string; states: DocumentState[] };

/** Names in the address. The page of a knowledge base has other ones beside them. */
export const PARAMETERS = { sort: "doc-sort", order: "doc-order", q: "doc-q", states: "doc-state", selected: "doc-selected" } as const;

/** Selected documents that the address holds at most; more of them are kept by the page alone. */
export const MAX_SELECTED_IN_ADDRESS = 100;

/** Returns the direction that a column has first: texts ascend, numbers and times descend. */
export const firstOrder = (sort: SortKey): Order => (sort === "name" || sort === "state" ? "asc" : "desc");

const listed = (query: URLSearchParams, name: string) => (query.get(name) ?? "").split(",").filter(Boolean);

/** Reads the filter of an address. Values that mean nothing are left out. */
export function readDocumentFilter(query: URLSearchParams): DocumentFilter {
  const sort = SORT_KEYS.find((key) => key === query.get(PARAMETERS.sort)) ?? "name";
  const order = query.get(PARAMETERS.order);
  const states = listed(query, PARAMETERS.states);
  return {
    sort,
    order: order === "asc" || order === "desc" ? order : firstOrder(sort),
    q: filterOf(query.get(PARAMETERS.q)) ?? "",
    states: DOCUMENT_STATES.filter((state) => states.includes(state)),
  };
}

export const isFiltered = ({ q, states }: DocumentFilter) => q !== "" || states.length > 0;

/** Returns the changes of the address that sort by a column: by the other direction if it is sorted by that column already. */
export function sortChange(filter: DocumentFilter, sort: SortKey): Record<string, string | null> {
  const first = firstOrder(sort);
  const order = filter.sort !== sort ? first : filter.order === "asc" ? "desc" : "asc";
  return { [PARAMETERS.sort]: sort === "name" ? null : sort, [PARAMETERS.order]: order === first ? null : order };
}

/** Documents, as the API filters them. */
export type FilterQuery = { q?: string; state?: string; folder?: string };

/** Returns the filter as the API takes it. */
export function filterQuery({ q, states }: Pick<DocumentFilter, "q" | "states">, folder: string | null): FilterQuery {
  return { ...(q !== "" && { q }), ...(states.length > 0 && { state: states.join(",") }), ...(folder !== null && { folder }) };
}

/** Returns the query of the list. */
export function documentQuery(filter: DocumentFilter, folder: string | null): FilterQuery & { sort: SortKey; order: Order } {
  return { sort: filter.sort, order: filter.order, ...filterQuery(filter, folder) };
}

/** Returns the parameters of an address that lead back to the list, with its folder. */
export function listParameters(query: URLSearchParams): Record<string, string | null> {
  const { sort, order, q, states } = PARAMETERS;
  return Object.fromEntries([sort, order, q, states, "folder"].map((name) => [name, query.get(name)]));
}

/** Reads the selected documents of an address. */
export const readSelected = (query: URLSearchParams) => new Set(listed(query, PARAMETERS.selected));

/** Returns the change of the address that holds a selection. */
export function selectedChange(selected: ReadonlySet<string>): Record<string, string | null> {
  return { [PARAMETERS.selected]: selected.size > MAX_SELECTED_IN_ADDRESS ? null : [...selected].join(",") };
}
