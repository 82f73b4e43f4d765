// The filters of a list, which the address holds.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Icon } from "./icon";

/** A form of filters that apply at once. `label` says what they filter. */
export function Filters({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <form class="filters" role="search" aria-label={label} onSubmit={(event) => event.preventDefault()}>
      {children}
    </form>
  );
}

type StateFilterProps<S extends string> = {
  states: readonly S[];
  /** Names of the states for people; without them, the states as they are. */
  names?: Record<S, string>;
  value: S | null;
  /** Gets the chosen state; an empty text for any. */
  onSet: (state: string) => void;
};

/** A choice of one state, or of any. */
export function StateFilter<S extends string>({ states, names, value, onSet }: StateFilterProps<S>) {
  return (
    <label>
      State
      <select name="state" value={value ?? ""} onChange={(event) => onSet(event.currentTarget.value)}>
        <option value="">any</option>
        {states.map((state) => (
          <option key={state} value={state}>
            {names?.[state] ?? state}
          </option>
        ))}
      </select>
    </label>
  );
}

type StatesFilterProps<S extends string> = {
  states: readonly S[];
  names: Record<S, string>;
  /** The chosen states; none for any. */
  value: readonly S[];
  onSet: (states: S[]) => void;
};

function summary<S extends string>(value: readonly S[], names: Record<S, string>): string {
  if (value.length === 0) return "Any state";
  return value.length <= 2 ? value.map((state) => names[state]).join(", ") : `${value.length} states`;
}

/** A choice of several states, or of any. */
export function StatesFilter<S extends string>({ states, names, value, onSet }: StatesFilterProps<S>) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const menu = details.current;
      if (!menu?.open) return;
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      const isOutside = event.type === "pointerdown" && event.target instanceof Node && !menu.contains(event.target);
      if (isEscape && menu.contains(document.activeElement)) menu.querySelector("summary")?.focus();
      if (isEscape || isOutside) menu.open = false;
    };
    addEventListener("keydown", close);
    addEventListener("pointerdown", close);
    return () => {
      removeEventListener("keydown", close);
      removeEventListener("pointerdown", close);
    };
  }, []);
  const toggle = (state: S) => onSet(value.includes(state) ? value.filter((one) => one !== state) : [...value, state]);
  return (
    <details ref={details} class="choice">
      <summary>
        {summary(value, names)} <Icon name="chevron-down" />
      </summary>
      <fieldset>
        <legend class="hidden">States</legend>
        {states.map((state) => (
          <label key={state}>
            <input type="checkbox" name={`state-${state}`} checked={value.includes(state)} onChange={() => toggle(state)} />
            {names[state]}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

type DaysFilterProps = { from: string | null; to: string | null; onSet: (change: { from?: string; to?: string }) => void };

/** A first and a last day. */
export function DaysFilter({ from, to, onSet }: DaysFilterProps) {
  return (
    <>
      <label>
        From
        <input type="date" name="from" value={from ?? ""} onChange={(event) => onSet({ from: event.currentTarget.value })} />
      </label>
      <label>
        Up to and including
        <input type="date" name="to" value={to ?? ""} onChange={(event) => onSet({ to: event.currentTarget.value })} />
      </label>
    </>
  );
}
