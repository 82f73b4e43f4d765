// Data that stays visible while it is read for another filter.

import { useSignal, useSignalEffect } from "@preact/signals";

import type { Resource } from "./resource";

/** Returns a resource whose data is the last that was read, also if it was read for other values. */
export function useKept<R extends Resource<unknown>>(of: R): R {
  const kept = useSignal<unknown>(of.data.peek());
  useSignalEffect(() => {
    if (of.data.value !== undefined) kept.value = of.data.value;
  });
  return { ...of, data: kept };
}
