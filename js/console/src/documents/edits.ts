// Texts that are being edited. They survive navigation inside the console, and end with the session.

import { effect, signal } from "@preact/signals";

import { sessions } from "../api";
import type { Tagged } from "./contents";

/** A text that is being edited: `before` is the content when that began; null if there was none. */
export type Edit = { before: Tagged | null; text: string };

/** Returns true if an edit would change the content. */
export const isChanged = ({ before, text }: Edit) => text !== (before?.text ?? "");

const edits = signal<ReadonlyMap<string, Edit>>(new Map());

export const editOf = (key: string) => edits.value.get(key);

/** Keeps an edit; `null` ends it. */
export function setEdit(key: string, edit: Edit | null): void {
  const next = new Map(edits.peek());
  if (edit) next.set(key, edit);
  else next.delete(key);
  edits.value = next;
}

const warn = (event: BeforeUnloadEvent) => event.preventDefault();

effect(() => {
  if ([...edits.value.values()].some(isChanged)) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
});

effect(() => {
  if (!sessions.current.value) edits.value = new Map();
});
