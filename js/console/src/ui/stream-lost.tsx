// A quiet sign that what is shown is not kept up to date.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { isStreamLost } from "../events";
import { Icon } from "./icon";

/** Time for which the stream of events may be lost before it is said. Most losses are shorter, such as a restart of the server. */
const PATIENCE_MS = 5_000;

export function StreamLost({ partner }: { partner: string }) {
  const isLost = isStreamLost(partner);
  const isShown = useSignal(false);
  useEffect(() => {
    isShown.value = false;
    if (!isLost) return;
    const timer = setTimeout(() => (isShown.value = true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [isLost]);
  return (
    <span class="stream-lost" role="status">
      {isShown.value && (
        <>
          <Icon name="cloud-off" />
          <span>No live updates</span>
        </>
      )}
    </span>
  );
}
