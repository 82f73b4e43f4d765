// Work that would be lost with the page or with the session. The browser asks before the page is left, and the console before somebody signs out.

import { type ReadonlySignal, computed, effect, signal } from "@preact/signals";

/** Words for something that would be lost, such as `2 unsaved texts`; null if there is nothing. */
type Part = ReadonlySignal<string | null>;

const parts = signal<readonly Part[]>([]);

/** Adds something that may be lost. */
export function mayBeLost(part: Part): void {
  parts.value = [...parts.peek(), part];
}

/** Words for all that would be lost now. */
export const unfinished = computed(() => parts.value.map((part) => part.value).filter((words) => words !== null));

const list = new Intl.ListFormat("en", { type: "conjunction" });

/** Returns words as a list, such as `a, b, and c`. */
export const listed = (words: readonly string[]) => list.format(words);

const warn = (event: BeforeUnloadEvent) => event.preventDefault();

const stop = effect(() => {
  if (unfinished.value.length > 0) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
});

/** Lets the page be left without a question. */
export function allowLeaving(): void {
  stop();
  removeEventListener("beforeunload", warn);
}
