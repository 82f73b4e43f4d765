// Names that the API gives as paths and references.

const CALL_PATH = "/v2/calls/";

/** Returns the UUID of a call's path, such as `/v2/calls/<id>`; null for the path of anything else. */
export function callId(path: string): string | null {
  const id = path.startsWith(CALL_PATH) ? path.slice(CALL_PATH.length) : "";
  return id === "" || id.includes("/") ? null : id;
}

/** Returns the end of a UUID, which tells apart ids that were made at the same time. */
export const shortId = (id: string) => id.slice(-8);

/** Returns the name of a key or a quota; the end of its id if it has none. */
export const nameOf = ({ name, id }: { name: string; id: string }) => name || shortId(id);

export type Reference = { partner: string; name: string };

/** Returns the parts of `repo:<partner>/<name>`; null for anything else. */
export function parseReference(reference: string): Reference | null {
  const [, partner, name] = /^repo:([^/]+)\/([^/]+)$/.exec(reference) ?? [];
  return partner !== undefined && name !== undefined ? { partner, name } : null;
}
