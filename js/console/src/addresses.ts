// Patterns of the paths that views link to.

import { fill } from "./path";

export const CALLS = "/p/:partner/calls";
export const CALL = `${CALLS}/:id`;
export const DELIVERIES = "/p/:partner/webhooks";
export const DELIVERY = `${DELIVERIES}/:id`;
export const CHARACTERS = "/p/:partner/characters";
export const CHARACTER = `${CHARACTERS}/:name`;
export const CHARACTER_EDITOR = `${CHARACTER}/edit`;
export const NEW_CHARACTER = "/p/:partner/new-character";
export const KNOWLEDGE = "/p/:partner/knowledge";
export const BASE = `${KNOWLEDGE}/:name`;
export const RETRIEVAL = `${BASE}/retrieval`;
export const DOCUMENT = `${BASE}/documents/:id`;
export const VOICES = "/p/:partner/voices";
export const VOICE = `${VOICES}/:name`;
export const TRANSCRIPTS = "/p/:partner/transcripts";
export const TRANSCRIPT = `${TRANSCRIPTS}/:id`;
export const ANALYSES = "/p/:partner/analyses";
export const ANALYSIS = `${ANALYSES}/:id`;
export const KEYS = "/p/:partner/keys";
export const QUOTAS = "/p/:partner/quotas";
export const QUOTA = `${QUOTAS}/:id`;
export const AUDIT = "/p/:partner/audit";
export const USAGE = "/p/:partner/usage";

/** Fills in a pattern and appends a query without empty values. */
export function address(pattern: string, values: Record<string, string>, query: Record<string, string | null> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(given).toString();
  return fill(pattern, values) + (text && `?${text}`);
}
