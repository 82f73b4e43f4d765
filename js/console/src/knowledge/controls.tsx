// Controls of lists of knowledge, which the address holds.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { SORTS, SORT_NAMES, type Sort, filterOf } from "./sorting";

/** Time that a field waits for the next key. */
const DEBOUNCE_MS = 250;

/** Returns a function that calls `run` once its calls have paused, and one that calls it at once. */
export function useDebounced<T>(run: (value: T) => void): { soon: (value: T) => void; now: (value: T) => void } {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => () => clearTimeout(timer.current), []);
  const now = (value: T) => {
    clearTimeout(timer.current);
    latest.current(value);
  };
  const soon = (value: T) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => latest.current(value), DEBOUNCE_MS);
  };
  return { soon, now };
}

type FilterFieldProps = { name: string; label: string; value: string | null; onSet: (text: string | null) => void };

/** A field for a text that names contain. What is typed counts after a pause, on Enter, and when the field is left. */
export function FilterField({ name, label, value, onSet }: FilterFieldProps) {
  const typed = useSignal(value ?? "");
  const { soon, now } = useDebounced((text: string) => onSet(filterOf(text)));
  useEffect(() => {
    if (filterOf(typed.peek()) !== value) typed.value = value ?? "";
  }, [value]);
  return (
    <label>
      {label}
      <input
        type="search"
        name={name}
        autocomplete="off"
        maxLength={200}
        dir="auto"
        value={typed.value}
        onInput={(event) => soon((typed.value = event.currentTarget.value))}
        onChange={(event) => now((typed.value = event.currentTarget.value))}
      />
    </label>
  );
}

type SortFieldProps = { name: string; value: Sort; onSet: (sort: Sort) => void };

export function SortField({ name, value, onSet }: SortFieldProps) {
  return (
    <label>
      Sort by
      <select name={name} value={value} onChange={(event) => onSet(event.currentTarget.value as Sort)}>
        {SORTS.map((sort) => (
          <option key={sort} value={sort}>
            {SORT_NAMES[sort]}
          </option>
        ))}
      </select>
    </label>
  );
}
