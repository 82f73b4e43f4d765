// Characters that are being edited.

import { CHARACTER_EDITOR, NEW_CHARACTER, address } from "../addresses";
import { Edits } from "../edits";
import { type Draft, EMPTY, isSame } from "./draft";

/** A saved version that an edit began with. */
export type Before = { version: number; draft: Draft };
/** An edit: `name` is null for a character that is not saved yet, and so is `before`. `values` are those that the preview fills placeholders with. */
export type CharacterEdit = {
  at: { partner: string; name: string | null };
  before: Before | null;
  draft: Draft;
  values: Record<string, string>;
};

export const characterEdits: Edits<CharacterEdit["at"], CharacterEdit> = new Edits<CharacterEdit["at"], CharacterEdit>({
  keyOf: ({ partner, name }) => JSON.stringify(["character", partner, name]),
  isChanged: ({ before, draft }) => !isSame(draft, before?.draft ?? EMPTY),
  entryOf: ({ at: { partner, name }, draft }) => ({
    to: name === null ? address(NEW_CHARACTER, { partner }) : address(CHARACTER_EDITOR, { partner, name }),
    name: name ?? (draft.name || "New character"),
    part: name === null ? "new character" : "character",
  }),
});
