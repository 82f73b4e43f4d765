// The filters of a list, which the address holds.

import type { ComponentChildren } from "preact";

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
