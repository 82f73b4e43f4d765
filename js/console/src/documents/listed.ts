// Figures of one document that only the list has: the parts of its spend, its tokens, and how long it waits.

import { type Schemas, api } from "../api";
import { findEntry } from "../knowledge/find";
import { ask } from "../problem";
import type { Call } from "../ui/resource";

type Place = { partner: string; base: string; id: string; name: string; folder: string };

/** Finds a document in the list by its name and folder; null if it is not there. */
export function readListed({ partner, base, id, name, folder }: Place, call: Call): Promise<Schemas["ListedDocumentView"] | null> {
  const read = async (cursor?: string) => {
    const query = { q: name.trim(), folder, ...(cursor !== undefined && { cursor }) };
    const page = await ask(api.GET("/api/document-list/{partner}/{kb}", { ...call, params: { path: { partner, kb: base }, query } }));
    return { entries: page.documents, next: page.next_cursor ?? null };
  };
  return findEntry(read, (document) => document.id === id);
}
