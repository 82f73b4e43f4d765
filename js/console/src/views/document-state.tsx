// The state of a document: a label, the progress of rewriting, and reasons and warnings in words.

import type { Schemas } from "../api";
import { STATE_CLASSES, STATE_NAMES, reasonInWords, warningInWords } from "../documents/words";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Time } from "../ui/time";

type Progress = { rewrite_status: Schemas["Step"]; rewrite_sections?: number | null; rewrite_sections_done?: number | null };

/** Sections of a rewriting that is queued, running, blocked or failed midway. */
function Sections({ of: { rewrite_status: step, rewrite_sections: all, rewrite_sections_done: done } }: { of: Progress }) {
  if (!all || step === "none" || step === "done") return null;
  const words = `${formatNumber(done ?? 0)} of ${formatNumber(all)} sections`;
  return (
    <span class="sections">
      <progress max={all} value={done ?? 0} aria-label={`Rewriting: ${words}`} />
      {words}
    </span>
  );
}

export function DocumentState({ state, of }: { state: Schemas["DocumentStatus"]; of: Progress }) {
  return (
    <>
      <span class={`state ${STATE_CLASSES[state]}`}>{STATE_NAMES[state]}</span>
      <Sections of={of} />
    </>
  );
}

/** Why a step failed or waits, and what is wrong with the contents. */
export function Reasons({ reason, warning }: { reason?: string | null | undefined; warning?: string | null | undefined }) {
  return (
    <>
      {reason && (
        <p class="reason" dir="auto">
          {reasonInWords(reason)}
        </p>
      )}
      {warning && (
        <p class="reason warning" dir="auto">
          <Icon name="triangle-alert" /> {warningInWords(warning)}
        </p>
      )}
    </>
  );
}

/** The time that work has waited, and when it is tried next. */
export function Waiting({ since, next }: { since?: string | null | undefined; next?: string | null | undefined }) {
  if (!since) return <span class="none">—</span>;
  return (
    <>
      <Time at={since} />
      {next && (
        <span class="next">
          next <Time at={next} />
        </span>
      )}
    </>
  );
}
