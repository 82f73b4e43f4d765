// Data that no event outdates: read again on request, and when the page is shown again later.

import { useEffect, useRef } from "preact/hooks";

import { NodeName } from "../system/node-name";
import { Reload } from "./reload";
import { type Resource } from "./resource";
import { Time } from "./time";

/** Age of data, in milliseconds, from which it is read again when the page becomes visible. */
const OUTDATED_AFTER_MS = 60_000;

/** Reads a resource again when the page becomes visible, if the last read was a minute ago or more. */
export function useRecent<T>(resource: Resource<T>): Resource<T> {
  const { data, reload } = resource;
  const readAt = useRef(0);
  const value = data.value;
  useEffect(() => {
    readAt.current = performance.now();
  }, [value]);
  useEffect(() => {
    const shown = () => {
      if (!document.hidden && performance.now() - readAt.current >= OUTDATED_AFTER_MS) void reload();
    };
    document.addEventListener("visibilitychange", shown);
    return () => document.removeEventListener("visibilitychange", shown);
  }, [reload]);
  return resource;
}

/** Adds the time at which data was read. */
export const asOf = async <T,>(read: Promise<T>) => ({ data: await read, at: new Date().toISOString() });

/** The time of the data, the node that answered if that matters, and the button to read again. */
export function AsOf({ at, node, of }: { at: string; node?: string; of: Pick<Resource<unknown>, "isLoading" | "reload"> }) {
  return (
    <div class="actions">
      <span class="hint">
        As of <Time at={at} />
        {node !== undefined && (
          <>
            , from node <NodeName>{node}</NodeName>
          </>
        )}
      </span>
      <Reload of={of} />
    </div>
  );
}
