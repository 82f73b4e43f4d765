// Questions that are edited: documents are ticked as expected, or the texts of a saved one are changed.

import { RETRIEVAL, address } from "../addresses";
import type { Schemas } from "../api";
import { type Asked, askedOf, askedParameters, isShareable } from "./retrieval";

type Saved = Schemas["QuestionView"];

/** Names of documents by their ids. */
export type Expected = ReadonlyMap<string, string>;

/**
 * A question that is edited: a saved one by its id, another one, whose `id` is null, by its text. `message` is empty for the latter if it is too long
 * for an address.
 */
export type QuestionAt = { partner: string; base: string; id: string | null; message: string };

/** An edit of a question. `before` is the saved question when the edit began; null for a question that was never saved. */
export type QuestionEdit = { at: QuestionAt; before: Saved | null; asked: Asked; expected: Expected };

/** Returns the documents that a saved question expects. */
export const expectedOf = (saved: Saved | null): Expected => new Map(saved?.expected_documents.map((it) => [it.document_id, it.document_name]));

/** Returns how edits of a question are found; without an id, those of the question that is asked. */
export function questionAt(partner: string, base: string, id: string | null, asked: Asked | null): QuestionAt {
  return { partner, base, id, message: id === null && asked && isShareable(asked) ? asked.message : "" };
}

const textsOf = ({ message, before, name }: Asked) => JSON.stringify([message, before, name]);
const idsOf = (expected: Expected) => [...expected.keys()].sort().join();

/** Returns true if saving would change something. Weights are not saved. */
export function isQuestionChanged({ before, asked, expected }: Omit<QuestionEdit, "at">): boolean {
  if (!before) return expected.size > 0;
  return textsOf(asked) !== textsOf(askedOf(before, {})) || idsOf(expected) !== idsOf(expectedOf(before));
}

/** Returns a text that tells edits apart. */
export const questionKey = ({ partner, base, id, message }: QuestionAt) => JSON.stringify(["question", partner, base, id, message]);

/** Returns the path of the search that an edit belongs to. */
export function questionPath({ at: { partner, base, id }, asked }: Pick<QuestionEdit, "at" | "asked">): string {
  return address(RETRIEVAL, { partner, name: base }, { question: id, ...(isShareable(asked) ? askedParameters(asked) : {}) });
}
