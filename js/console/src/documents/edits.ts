// Texts of documents that are being edited.

import { DOCUMENT, address } from "../addresses";
import { Edits } from "../edits";
import type { DocumentAt, Tagged, WritableVariant } from "./contents";

/** A text of a document. */
export type TextAt = DocumentAt & { variant: WritableVariant };
/** A text that is being edited: `name` is that of the document, `before` the content when that began; null if there was none. */
export type Edit = { at: TextAt; name: string; before: Tagged | null; text: string };

const TEXTS: Record<WritableVariant, string> = { digitized: "digitized text", rewritten: "final content" };

export const textEdits: Edits<TextAt, Edit> = new Edits<TextAt, Edit>({
  keyOf: ({ partner, base, id, variant }) => JSON.stringify([partner, base, id, variant]),
  isChanged: ({ before, text }) => text !== (before?.text ?? ""),
  entryOf: ({ at, name }) => ({
    to: address(DOCUMENT, { partner: at.partner, name: at.base, id: at.id }, { tab: at.variant }),
    name,
    part: TEXTS[at.variant],
    within: at.base,
  }),
});
