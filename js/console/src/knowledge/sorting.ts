// Sorting and filter of a list of knowledge: as the address holds them, and as the API takes them.

export const SORTS = ["name", "price", "size"] as const;
export type Sort = (typeof SORTS)[number];

/** Names of the sort keys, with their direction. */
export const SORT_NAMES: Record<Sort, string> = { name: "Name", price: "Price, highest first", size: "Size, largest first" };

/** Sort key, and text that names contain. */
export type Sorting = { sort: Sort; q: string | null };

/** The longest filter that the API takes, in characters. */
const MAX_FILTER = 200;

/** Returns the filter that a text stands for; null for none. */
export function filterOf(text: string | null): string | null {
  const characters = [...(text?.trim() ?? "")];
  return characters.length === 0 ? null : characters.slice(0, MAX_FILTER).join("");
}

/** Reads the parameters `sort` and `q` of an address, or others whose names begin with `prefix`. */
export function readSorting(query: URLSearchParams, prefix = ""): Sorting {
  return { sort: SORTS.find((sort) => sort === query.get(`${prefix}sort`)) ?? "name", q: filterOf(query.get(`${prefix}q`)) };
}

/** Returns the parameters of the address. The sort key by default has none. */
export function sortingChanges({ sort, q }: Partial<Sorting>, prefix = ""): Record<string, string | null> {
  return {
    ...(sort !== undefined && { [`${prefix}sort`]: sort === "name" ? null : sort }),
    ...(q !== undefined && { [`${prefix}q`]: q }),
  };
}

/** The query of a page, as the API takes it. */
export type SortedQuery = { sort: Sort; q?: string; cursor?: string };

/** Returns the query of a page. The API sorts names in ascending order, numbers in descending order. */
export function sortedQuery({ sort, q }: Sorting, cursor?: string): SortedQuery {
  return { sort, ...(q !== null && { q }), ...(cursor !== undefined && { cursor }) };
}
