// Contents of a document that are read again when the document changes, or when the user asks for that.

import { useRef } from "preact/hooks";

import type { Schemas } from "../api";
import { type DocumentAt, MAX_LIVE } from "../documents/contents";
import { Icon } from "../ui/icon";
import { type Call, type Resource, useResource } from "../ui/resource";

type DocumentView = Schemas["DocumentView"];

/** Contents, and whether the document has changed since they were read. */
export type LiveContents<T> = { contents: Resource<T>; isOutdated: boolean };

/** Reads contents of so many characters, which are not read again unasked above {@link MAX_LIVE}. `on` lists the values that the read depends on. */
export function useLiveContents<T>(
  at: DocumentAt,
  of: DocumentView,
  characters: number,
  read: (call: Call) => Promise<T>,
  on: readonly unknown[],
): LiveContents<T> {
  const { partner, base, id } = at;
  const isLive = characters <= MAX_LIVE;
  const readOf = useRef(of.updated_at);
  const contents = useResource(
    (call) => {
      readOf.current = of.updated_at;
      return read(call);
    },
    [partner, base, id, ...on],
    isLive ? { partner, kinds: ["document"], base, id } : undefined,
  );
  return { contents, isOutdated: !isLive && contents.data.value !== undefined && readOf.current !== of.updated_at };
}

/** A button that reads outdated contents again. */
export function ReadAgain({ of: { contents, isOutdated } }: { of: LiveContents<unknown> }) {
  if (!isOutdated) return null;
  return (
    <button type="button" onClick={() => void contents.reload()}>
      <Icon name="refresh-cw" /> The document has changed: read it again
    </button>
  );
}
