// Lists whose entries are added, edited, moved and removed.

import type { VNode } from "preact";
import { useRef } from "preact/hooks";

import { Icon } from "./icon";
import { RowAction } from "./row-action";

type ListEditorProps<T> = {
  entries: readonly T[];
  onSet: (entries: T[]) => void;
  /** Name of any entry, such as `greeting`, and of one in the labels of its buttons, such as `greeting 2`. */
  noun: string;
  nameOf?: (entry: T, place: number) => string;
  /** A new entry. */
  empty: T;
  /** The most entries. */
  most: number;
  /** False if the order means nothing. */
  isOrdered?: boolean;
  children: (entry: T, set: (entry: T) => void, place: number) => VNode;
};

let made = 0;

/** Editors of the entries, each with its buttons, and one to add another. */
export function ListEditor<T>({ entries, onSet, noun, nameOf, empty, most, isOrdered = true, children }: ListEditorProps<T>) {
  // An entry keeps its key when it moves, and with it its fields and the focus.
  const keys = useRef<number[]>([]);
  while (keys.current.length < entries.length) keys.current.push((made += 1));
  keys.current.length = entries.length;
  const list = useRef<HTMLUListElement>(null);

  const set = (place: number, entry: T) => onSet(entries.map((other, at) => (at === place ? entry : other)));
  const remove = (place: number) => {
    keys.current.splice(place, 1);
    onSet(entries.filter((_, at) => at !== place));
  };
  const move = (place: number, to: number) => {
    const moved = [...entries];
    for (const array of [moved, keys.current] as unknown[][]) array.splice(to, 0, ...array.splice(place, 1));
    onSet(moved);
  };
  const add = () => {
    onSet([...entries, empty]);
    requestAnimationFrame(() => list.current?.lastElementChild?.querySelector<HTMLElement>("input, textarea")?.focus());
  };
  const name = (entry: T, place: number) => nameOf?.(entry, place) ?? `${noun} ${place + 1}`;
  return (
    <>
      <ul ref={list} class="entries">
        {entries.map((entry, place) => (
          <li key={keys.current[place]}>
            <div>{children(entry, (changed) => set(place, changed), place)}</div>
            <div class="entry-actions">
              {isOrdered && (
                <>
                  <RowAction icon="arrow-up" label={`Move ${name(entry, place)} up`} isDisabled={place === 0} onClick={() => move(place, place - 1)} />
                  <RowAction
                    icon="arrow-down"
                    label={`Move ${name(entry, place)} down`}
                    isDisabled={place === entries.length - 1}
                    onClick={() => move(place, place + 1)}
                  />
                </>
              )}
              <RowAction icon="trash-2" label={`Remove ${name(entry, place)}`} onClick={() => remove(place)} />
            </div>
          </li>
        ))}
      </ul>
      {entries.length < most && (
        <button type="button" onClick={add}>
          <Icon name="plus" /> Add a {noun}
        </button>
      )}
    </>
  );
}
