// Which events outdate what was read.

import type { StreamEvent } from "./stream";

/** Events after which a resource is read again. */
export type After = {
  partner: string;
  /** Kinds of resources, such as `document`. */
  kinds: readonly string[];
  /** Leaves out the resources of other knowledge bases, and adds the knowledge base itself. */
  base?: string;
  /** Leaves out other resources of these kinds. */
  id?: string;
};

/** Returns true if a resource must be read again after an event. */
export function isOutdatedBy(event: StreamEvent, after: After, hasFailed: boolean): boolean {
  if (event.kind === "reset") return true;
  // The server is reachable again.
  if (event.kind === "ready") return hasFailed;
  if (!("id" in event)) return false;
  // A knowledge base that is being deleted, or is gone, tells nothing of what is in it.
  if (event.kind === "base" && after.base !== undefined) return event.base === after.base;
  if (!after.kinds.includes(event.kind)) return false;
  if (after.id !== undefined && event.id !== after.id) return false;
  return after.base === undefined || event.base === null || event.base === after.base;
}
