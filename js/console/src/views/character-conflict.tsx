// Conflicts with what others did to a character while it was edited.

import { useSignal } from "@preact/signals";

import { type Draft, contentOf } from "../characters/draft";
import type { CharacterView } from "../characters/save";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Time } from "../ui/time";
import { CharacterChanges } from "./character-changes";

type ConflictProps = {
  /** The version that the edit began with. */
  before: number;
  /** The newest version; null if the character is deleted. */
  newest: CharacterView | null;
  draft: Draft;
  isBusy: boolean;
  onOverwrite: () => void;
  onDiscard: () => void;
};

export function Conflict({ before, newest, draft, isBusy, onOverwrite, onDiscard }: ConflictProps) {
  const isOpen = useSignal(false);
  return (
    <div class="conflict">
      <h2>
        <Icon name="triangle-alert" /> {newest ? "Somebody else saved this character" : "Somebody else deleted this character"}
      </h2>
      <p role="alert">
        {newest ? (
          <>
            Version {formatNumber(newest.version)} was saved <Time at={newest.updated_at} />, while you were editing version {formatNumber(before)}. Yours is not saved.
          </>
        ) : (
          <>The character was deleted while you were editing it. Yours is not saved.</>
        )}
      </p>
      {newest && (
        <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
          <summary>Compare version {formatNumber(newest.version)} with yours</summary>
          {isOpen.value && <CharacterChanges before={newest} after={contentOf(draft)} />}
        </details>
      )}
      <div class="actions start">
        <button type="button" class="danger" aria-disabled={isBusy} onClick={onOverwrite}>
          {newest ? `Save mine as version ${formatNumber(newest.version + 1)}` : "Create it again"}
        </button>
        <button type="button" onClick={onDiscard}>
          Discard mine
        </button>
      </div>
    </div>
  );
}
