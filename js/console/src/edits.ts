// Edits that were not saved. They survive navigation inside the console and lost connections, and end with the session.

import { type ReadonlySignal, type Signal, computed, effect, signal } from "@preact/signals";

import { sessions } from "./api";
import { counted } from "./knowledge/words";
import { mayBeLost } from "./unfinished";

/** An unsaved edit as the list of them shows it: the way back to its editor, the name of what is edited, which part of that, and where it is. */
export type Unsaved = { key: string; to: string; name: string; part: string; within?: string };

type Rules<A, E extends { at: A }> = {
  /** Returns what tells edits of this kind apart. */
  keyOf: (at: A) => string;
  /** Returns true if saving an edit would change something. */
  isChanged: (edit: E) => boolean;
  entryOf: (edit: E) => Omit<Unsaved, "key">;
};

const lists = signal<readonly ReadonlySignal<Unsaved[]>[]>([]);

/** The edits of all kinds that would change something. */
export const unsaved = computed(() => lists.value.flatMap((list) => list.value));

mayBeLost(computed(() => (unsaved.value.length > 0 ? counted(unsaved.value.length, "unsaved text") : null)));

/** Edits of one kind; `A` says what is edited. */
export class Edits<A, E extends { at: A }> {
  readonly #edits: Signal<ReadonlyMap<string, E>> = signal(new Map());
  /** The edit whose field takes the focus when it appears. */
  #opened: string | null = null;

  constructor(private readonly rules: Rules<A, E>) {
    const changed = computed(() => {
      const entries = [...this.#edits.value].filter(([, edit]) => rules.isChanged(edit));
      return entries.map(([key, edit]) => ({ key, ...rules.entryOf(edit) }));
    });
    lists.value = [...lists.peek(), changed];
    effect(() => {
      if (!sessions.current.value) this.#edits.value = new Map();
    });
  }

  isChanged(edit: E): boolean {
    return this.rules.isChanged(edit);
  }

  of(at: A): E | undefined {
    return this.#edits.value.get(this.rules.keyOf(at));
  }

  /** The edit as it is now, for what runs outside of a render. */
  peek(at: A): E | undefined {
    return this.#edits.peek().get(this.rules.keyOf(at));
  }

  set(edit: E): void {
    this.#put(edit.at, edit);
  }

  end(at: A): void {
    this.#put(at, null);
  }

  /** Begins an edit, or goes on with one, whose field takes the focus. */
  open(edit: E): void {
    this.#opened = this.rules.keyOf(edit.at);
    this.set(edit);
  }

  /** Returns true, once, if the field of an edit takes the focus. */
  takesFocus(at: A): boolean {
    const isOpened = this.#opened === this.rules.keyOf(at);
    if (isOpened) this.#opened = null;
    return isOpened;
  }

  #put(at: A, edit: E | null): void {
    const key = this.rules.keyOf(at);
    const next = new Map(this.#edits.peek());
    if (edit) next.set(key, edit);
    else next.delete(key);
    this.#edits.value = next;
  }
}
