// The views of the console: their addresses, and who sees them.

import {
  ANALYSES, ANALYSIS, AUDIT, BASE, CALL, CALLS, CHARACTER, CHARACTERS, CHARACTER_EDITOR, DELIVERIES, DELIVERY, DOCUMENT, KEYS, KNOWLEDGE, NEW_CHARACTER, QUOTA,
  QUOTAS, RETRIEVAL, TRANSCRIPT, TRANSCRIPTS, USAGE, VOICE, VOICES, address,
} from "./addresses";
import { type Schemas, may, sessions } from "./api";
import { shortId } from "./calls/names";
import { match } from "./path";
import type { IconName } from "./ui/icon";
import { type View, lazy } from "./ui/lazy";
import { Overview } from "./views/overview";

/** Who sees a view. */
type Audience = { isForAdmins?: boolean; scope?: Schemas["Scope"] };

/** A view with a link in the menu. */
export type Place = Audience & {
  /** Pattern of the path; `:partner` stands for the current partner. */
  path: string;
  title: string;
  icon: IconName;
  view: View<{ partner: string }>;
};

/** Names in the paths of details. Each has `partner`, and those that its pattern has. */
type Names = { partner: string; id: string; name: string };

/** A view of one entry of a list. */
type Detail = Audience & {
  path: string;
  /** Pattern of the list. */
  within: string;
  title: (names: Names) => string;
  view: View<Names>;
};

const PLACES: Place[] = [
  { path: "/", title: "Overview", icon: "activity", view: Overview },
  { path: CALLS, title: "Calls", icon: "phone", view: lazy(async () => (await import("./views/calls")).Calls), scope: "calls" },
  {
    path: KNOWLEDGE,
    title: "Knowledge",
    icon: "library",
    view: lazy(async () => (await import("./views/bases")).KnowledgeBases),
    scope: "knowledge",
  },
  {
    path: CHARACTERS,
    title: "Characters",
    icon: "mic",
    view: lazy(async () => (await import("./views/characters")).Characters),
    scope: "characters",
  },
  {
    path: VOICES,
    title: "Voices",
    icon: "audio-lines",
    view: lazy(async () => (await import("./views/voices")).Voices),
    scope: "voices",
  },
  {
    path: TRANSCRIPTS,
    title: "Transcripts",
    icon: "file-text",
    view: lazy(async () => (await import("./views/transcripts")).Transcripts),
    scope: "transcripts",
  },
  {
    path: ANALYSES,
    title: "Dialog analyses",
    icon: "message-square-text",
    view: lazy(async () => (await import("./views/analyses")).Analyses),
    scope: "analyses",
  },
  {
    path: DELIVERIES,
    title: "Webhook deliveries",
    icon: "webhook",
    view: lazy(async () => (await import("./views/webhooks")).Webhooks),
    scope: "webhooks",
  },
  { path: USAGE, title: "Usage", icon: "chart-column", view: lazy(async () => (await import("./views/usage")).Usage), scope: "keys" },
  { path: QUOTAS, title: "Quotas", icon: "gauge", view: lazy(async () => (await import("./views/quotas")).Quotas), scope: "keys" },
  { path: KEYS, title: "Keys", icon: "key-round", view: lazy(async () => (await import("./views/keys")).Keys), scope: "keys" },
  { path: AUDIT, title: "Audit log", icon: "history", view: lazy(async () => (await import("./views/audit")).Audit), scope: "keys" },
  { path: "/partners", title: "Partners", icon: "building-2", view: lazy(async () => (await import("./views/partners")).Partners), isForAdmins: true },
  { path: "/audit", title: "Audit log of all", icon: "history", view: lazy(async () => (await import("./views/audit")).AuditOfAll), isForAdmins: true },
  { path: "/system", title: "System", icon: "server", view: lazy(async () => (await import("./views/system")).System), isForAdmins: true },
];

const DETAILS: Detail[] = [
  {
    path: BASE,
    within: KNOWLEDGE,
    title: ({ name }) => `Knowledge base ${name}`,
    view: lazy(async () => (await import("./views/base")).KnowledgeBase),
    scope: "knowledge",
  },
  {
    path: RETRIEVAL,
    within: KNOWLEDGE,
    title: ({ name }) => `Retrieval of ${name}`,
    view: lazy(async () => (await import("./views/base-retrieval")).Retrieval),
    scope: "knowledge",
  },
  {
    path: DOCUMENT,
    within: KNOWLEDGE,
    title: ({ id }) => `Document ${shortId(id)}`,
    view: lazy(async () => (await import("./views/document")).Document),
    scope: "knowledge",
  },
  {
    path: CALL,
    within: CALLS,
    title: ({ id }) => `Call ${shortId(id)}`,
    view: lazy(async () => (await import("./views/call")).Call),
    scope: "calls",
  },
  {
    path: CHARACTER,
    within: CHARACTERS,
    title: ({ name }) => `Character ${name}`,
    view: lazy(async () => (await import("./views/character")).Character),
    scope: "characters",
  },
  {
    path: CHARACTER_EDITOR,
    within: CHARACTERS,
    title: ({ name }) => `Edit ${name}`,
    view: lazy(async () => (await import("./views/character-edit")).EditCharacter),
    scope: "characters",
  },
  {
    path: NEW_CHARACTER,
    within: CHARACTERS,
    title: () => "New character",
    view: lazy(async () => (await import("./views/character-edit")).NewCharacter),
    scope: "characters",
  },
  {
    path: VOICE,
    within: VOICES,
    title: ({ name }) => `Voice ${name}`,
    view: lazy(async () => (await import("./views/voice")).Voice),
    scope: "voices",
  },
  {
    path: TRANSCRIPT,
    within: TRANSCRIPTS,
    title: ({ id }) => `Transcript ${shortId(id)}`,
    view: lazy(async () => (await import("./views/transcript")).Transcript),
    scope: "transcripts",
  },
  {
    path: ANALYSIS,
    within: ANALYSES,
    title: ({ id }) => `Dialog analysis ${shortId(id)}`,
    view: lazy(async () => (await import("./views/analysis")).Analysis),
    scope: "analyses",
  },
  {
    path: DELIVERY,
    within: DELIVERIES,
    title: ({ id }) => `Delivery ${shortId(id)}`,
    view: lazy(async () => (await import("./views/delivery")).DeliveryPage),
    scope: "webhooks",
  },
  {
    path: QUOTA,
    within: QUOTAS,
    title: ({ id }) => `Quota ${shortId(id)}`,
    view: lazy(async () => (await import("./views/quota")).Quota),
    scope: "keys",
  },
];

function mayRead({ isForAdmins, scope }: Audience): boolean {
  if (isForAdmins && sessions.current.value?.isAdmin !== true) return false;
  return scope === undefined || may(scope);
}

/** Returns the places of the menu. Without a partner, those of partners are left out. */
export function visiblePlaces(partner: string): Place[] {
  return PLACES.filter((place) => mayRead(place) && (partner !== "" || !place.path.includes(":partner")));
}

export const addressOf = (place: Place, partner: string) => address(place.path, { partner });

/** Returns how the link of a place is marked on a page. */
export function currentOf(place: Place, at: string): "page" | "true" | undefined {
  if (match(place.path, at)) return "page";
  return DETAILS.some((detail) => detail.within === place.path && match(detail.path, at)) ? "true" : undefined;
}

type FoundView = { path: string; title: string; names: Names; view: View<Names> };

/** Returns the view of a path; null if there is none that the session may see. */
export function findView(at: string, partner: string): FoundView | null {
  for (const { path, title, view } of visiblePlaces(partner)) {
    if (match(path, at)) return { path, title, view, names: { partner, id: "", name: "" } };
  }
  for (const detail of DETAILS) {
    const found = match(detail.path, at);
    if (!found || !mayRead(detail)) continue;
    const names = { partner, id: "", name: "", ...found };
    return { path: detail.path, title: detail.title(names), view: detail.view, names };
  }
  return null;
}
