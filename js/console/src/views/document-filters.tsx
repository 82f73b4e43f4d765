// Filters of the list of documents.

import { DOCUMENT_STATES, type DocumentFilter, PARAMETERS, isFiltered } from "../documents/filter";
import { STATE_NAMES } from "../documents/words";
import { FilterField } from "../knowledge/controls";
import { setQuery } from "../router";
import { Filters, StatesFilter } from "../ui/filters";

export function DocumentFilters({ filter }: { filter: DocumentFilter }) {
  const setStates = (states: string[]) => setQuery({ [PARAMETERS.states]: states.join(",") });
  return (
    <Filters label="Filter the documents">
      <FilterField name={PARAMETERS.q} label="Name" value={filter.q || null} onSet={(q) => setQuery({ [PARAMETERS.q]: q })} />
      <StatesFilter states={DOCUMENT_STATES} names={STATE_NAMES} value={filter.states} onSet={setStates} />
      {isFiltered(filter) && (
        <button type="button" onClick={() => setQuery({ [PARAMETERS.q]: null, [PARAMETERS.states]: null })}>
          Show all
        </button>
      )}
    </Filters>
  );
}
