// Names of keys and of their scopes.

import type { Schemas } from "./api";

export type Key = Schemas["KeyView"];
export type Scope = Schemas["Scope"];

export const SCOPE_NAMES: Record<Scope, string> = {
  calls: "calls",
  characters: "characters",
  knowledge: "knowledge bases",
  keys: "keys, quotas and usage",
  webhooks: "webhook deliveries",
  voices: "voices",
  transcripts: "transcripts",
  analyses: "analyses",
  speech: "speech",
  messaging: "legacy messaging",
};
export const SCOPES = Object.keys(SCOPE_NAMES) as Scope[];
