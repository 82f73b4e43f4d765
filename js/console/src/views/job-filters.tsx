// Filters of lists of jobs.

import { type JobFilter, isFiltered } from "../jobs/filter";
import { setQuery } from "../router";
import { DaysFilter, Filters, StatesFilter } from "../ui/filters";

type JobFiltersProps<S extends string> = { label: string; states: readonly S[]; names: Record<S, string>; filter: JobFilter<S> };

export function JobFilters<S extends string>({ label, states, names, filter }: JobFiltersProps<S>) {
  return (
    <Filters label={label}>
      <StatesFilter states={states} names={names} value={filter.states} onSet={(chosen) => setQuery({ state: chosen.join(",") })} />
      <DaysFilter from={filter.from} to={filter.to} onSet={setQuery} />
      {isFiltered(filter) && (
        <button type="button" onClick={() => setQuery({ state: null, from: null, to: null })}>
          Show all
        </button>
      )}
    </Filters>
  );
}
