// Bases, folders and documents that are being deleted: nothing is done with the documents of these.

import { api } from "../api";
import { findBase } from "../knowledge/bases";
import { readAll } from "../pages";
import { ask } from "../problem";
import { type Call, useResource } from "../ui/resource";
import type { Chosen } from "./estimate";

/** Names of the folders that are being deleted; `all` if that is the whole knowledge base. */
type Closed = ReadonlySet<string> | "all";

async function readClosed(partner: string, base: string, call: Call): Promise<Closed> {
  const read = async (cursor?: string) => {
    const params = { path: { partner, kb: base }, query: { ...(cursor !== undefined && { cursor }) } };
    const { folders, next_cursor } = await ask(api.GET("/api/folder-list/{partner}/{kb}", { ...call, params }));
    return { entries: folders, next: next_cursor ?? null };
  };
  const [found, folders] = await Promise.all([findBase(partner, base, call), readAll(read)]);
  if (found?.deletion_requested_at) return "all";
  return new Set(folders.filter((folder) => folder.deletion_requested_at).map(({ name }) => name));
}

/** Returns true if something can be done with a document: if neither it nor its folder or knowledge base is being deleted. */
export function isOpenIn(closed: Closed, { folder, state }: Pick<Chosen, "folder" | "state">): boolean {
  return closed !== "all" && !closed.has(folder) && state !== "delete_pending";
}

/** Returns a test of documents for {@link isOpenIn}. What is not known yet counts as open. */
export function useIsOpen(partner: string, base: string): (document: Pick<Chosen, "folder" | "state">) => boolean {
  const closed = useResource((call) => readClosed(partner, base, call), [partner, base], { partner, kinds: ["folder"], base });
  return (document) => isOpenIn(closed.data.value ?? new Set(), document);
}
