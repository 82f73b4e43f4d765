// The differences of two texts, line by line.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import { type Hunk, type Line, difference } from "../diff";
import { counted } from "../knowledge/words";

/** Hunks rendered at a time. */
const STEP = 200;
/** Characters of a line that are shown. */
const MAX_LINE = 4_000;

const MARKS: Record<Line["kind"], string> = { same: " ", added: "+", removed: "−" };
const WORDS: Record<Line["kind"], string> = { same: "", added: "added: ", removed: "removed: " };

function Lines({ of }: { of: Line[] }) {
  return (
    <>
      {of.map(({ kind, text }, place) => (
        <div key={place} class={`line ${kind}`}>
          <span aria-hidden="true">{MARKS[kind]}</span>
          <span dir="auto">
            {kind !== "same" && <span class="hidden">{WORDS[kind]}</span>}
            {text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text}
          </span>
        </div>
      ))}
    </>
  );
}

const isSkipped = (hunk: Hunk): hunk is { skipped: number } => "skipped" in hunk;

/** The differences of two texts. */
export function Difference({ before, after }: { before: string; after: string }) {
  const found = useMemo(() => difference(before, after), [before, after]);
  const shown = useSignal(STEP);
  if (found.kind === "equal") return <p class="none">The texts are equal.</p>;
  if (found.kind === "too-large") return <p class="none">The texts are too long or too different to compare them line by line.</p>;
  const { hunks, added, removed } = found;
  return (
    <>
      <p class="hint">
        {counted(added, "line")} added, {counted(removed, "line")} removed
      </p>
      <div class="diff">
        {hunks.slice(0, shown.value).map((hunk, place) =>
          isSkipped(hunk) ? (
            <div key={place} class="skipped">
              {counted(hunk.skipped, "equal line")}
            </div>
          ) : (
            <Lines key={place} of={hunk.lines} />
          ),
        )}
      </div>
      {hunks.length > shown.value && (
        <div class="more">
          <button type="button" onClick={() => (shown.value += STEP)}>
            Show more
          </button>
        </div>
      )}
    </>
  );
}

/** The difference of two texts, as they were when somebody asked for it. `title` says what it shows. */
export function Compared({ title, before, after }: { title: string; before: string; after: string }) {
  const shown = useSignal<[string, string] | null>(null);
  return (
    <details onToggle={(event) => (shown.value = event.currentTarget.open ? [before, after] : null)}>
      <summary>{title}</summary>
      {shown.value && <Difference before={shown.value[0]} after={shown.value[1]} />}
    </details>
  );
}
