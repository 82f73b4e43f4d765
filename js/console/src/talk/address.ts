// Addresses of the page for calls.

import { versionOf } from "../characters/parameters";

/** The path of the page. */
export const TALK = "/console/talk";

/** The character that the address of the page names: one that is being edited, or a saved one. */
export type Target = { partner: string } & ({ draft: string } | { name: string; version: number | null });

/** Returns the address of the page. */
export function talkAddress(target: Target): string {
  const named = "draft" in target ? { draft: target.draft } : { character: target.name, ...(target.version !== null && { version: String(target.version) }) };
  return `${TALK}?${new URLSearchParams({ partner: target.partner, ...named })}`;
}

/** Reads the address of the page; null if it names nobody. */
export function readTarget(query: URLSearchParams): Target | null {
  const [partner, draft, name] = ["partner", "draft", "character"].map((key) => query.get(key) ?? "");
  if (!partner) return null;
  if (draft) return { partner, draft };
  return name ? { partner, name, version: versionOf(query.get("version")) } : null;
}

/** Returns the address of a call's session at the origin of this page, which is the one that it may connect to. */
export function atOrigin(signedUrl: string, { protocol, host }: { protocol: string; host: string }): string {
  const url = new URL(signedUrl);
  return `${protocol === "https:" ? "wss:" : "ws:"}//${host}${url.pathname}${url.search}`;
}
