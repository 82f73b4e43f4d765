// Filters of the list of documents.

import { useEffect, useRef } from "preact/hooks";

import { DOCUMENT_STATES, type DocumentFilter, type DocumentState, PARAMETERS, isFiltered } from "../documents/filter";
import { STATE_NAMES } from "../documents/words";
import { FilterField } from "../knowledge/controls";
import { setQuery } from "../router";
import { Filters } from "../ui/filters";
import { Icon } from "../ui/icon";

function summary(states: DocumentState[]): string {
  if (states.length === 0) return "Any state";
  return states.length <= 2 ? states.map((state) => STATE_NAMES[state]).join(", ") : `${states.length} states`;
}

function StatesFilter({ states }: { states: DocumentState[] }) {
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
  const toggle = (state: DocumentState) => {
    const next = states.includes(state) ? states.filter((one) => one !== state) : [...states, state];
    setQuery({ [PARAMETERS.states]: next.join(",") });
  };
  return (
    <details ref={details} class="choice">
      <summary>
        {summary(states)} <Icon name="chevron-down" />
      </summary>
      <fieldset>
        <legend class="hidden">States</legend>
        {DOCUMENT_STATES.map((state) => (
          <label key={state}>
            <input type="checkbox" name={`state-${state}`} checked={states.includes(state)} onChange={() => toggle(state)} />
            {STATE_NAMES[state]}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

export function DocumentFilters({ filter }: { filter: DocumentFilter }) {
  return (
    <Filters label="Filter the documents">
      <FilterField name={PARAMETERS.q} label="Name" value={filter.q || null} onSet={(q) => setQuery({ [PARAMETERS.q]: q })} />
      <StatesFilter states={filter.states} />
      {isFiltered(filter) && (
        <button type="button" onClick={() => setQuery({ [PARAMETERS.q]: null, [PARAMETERS.states]: null })}>
          Show all
        </button>
      )}
    </Filters>
  );
}
