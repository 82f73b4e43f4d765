// Reads of knowledge bases that several views need.

import { type Schemas, api } from "../api";
import { ask } from "../problem";
import type { Call } from "../ui/resource";
import { findEntry } from "./find";

/** Finds a knowledge base in the list by its name. */
export function findBase(partner: string, name: string, call: Call): Promise<Schemas["ListedBaseView"] | null> {
  const read = async (cursor?: string) => {
    const params = { path: { partner }, query: { q: name, ...(cursor !== undefined && { cursor }) } };
    const page = await ask(api.GET("/api/kb-list/{partner}", { ...call, params }));
    return { entries: page.knowledge_bases, next: page.next_cursor ?? null };
  };
  return findEntry(read, (base) => base.name === name);
}
