// Texts that are being edited. They survive navigation inside the console and lost connections, and end with the session.

import { computed, effect, signal } from "@preact/signals";

import { sessions } from "../api";
import { counted } from "../knowledge/words";
import { mayBeLost } from "../unfinished";
import type { DocumentAt, Tagged, WritableVariant } from "./contents";

/** A text of a document. */
export type TextAt = DocumentAt & { variant: WritableVariant };
/** A text that is being edited: `name` is that of the document, `before` the content when that began; null if there was none. */
export type Edit = { at: TextAt; name: string; before: Tagged | null; text: string };

/** Returns true if an edit would change the content. */
export const isChanged = ({ before, text }: Edit) => text !== (before?.text ?? "");

const edits = signal<ReadonlyMap<string, Edit>>(new Map());

/** The edits that would change something. */
export const unsaved = computed(() => [...edits.value.values()].filter(isChanged));

mayBeLost(computed(() => (unsaved.value.length > 0 ? counted(unsaved.value.length, "unsaved text") : null)));

export const keyOf = ({ partner, base, id, variant }: TextAt) => JSON.stringify([partner, base, id, variant]);

export const editOf = (at: TextAt) => edits.value.get(keyOf(at));

function put(key: string, edit: Edit | null): void {
  const next = new Map(edits.peek());
  if (edit) next.set(key, edit);
  else next.delete(key);
  edits.value = next;
}

export const setEdit = (edit: Edit) => put(keyOf(edit.at), edit);
export const endEdit = (at: TextAt) => put(keyOf(at), null);

/** The edit whose field takes the focus when it appears. */
let opened: string | null = null;

/** Begins an edit, or goes on with one, whose field takes the focus. */
export function openEdit(edit: Edit): void {
  opened = keyOf(edit.at);
  setEdit(edit);
}

/** Returns true, once, if the field of an edit takes the focus. */
export function takesFocus(at: TextAt): boolean {
  const isOpened = opened === keyOf(at);
  if (isOpened) opened = null;
  return isOpened;
}

effect(() => {
  if (!sessions.current.value) edits.value = new Map();
});
