// The calls of a partner, newest first.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { CALL, KEYS, address } from "../addresses";
import { type Schemas, api, may } from "../api";
import { CALL_STATES, type CallFilter, callQuery, isFiltered, readFilter } from "../calls/filter";
import { callId, shortId } from "../calls/names";
import { ask } from "../problem";
import { Link, query, setQuery } from "../router";
import { DaysFilter, Filters, StateFilter } from "../ui/filters";
import { formatDuration } from "../ui/format";
import { usePages, useResource } from "../ui/resource";
import { Rows } from "../ui/rows";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { CallCharacter, CallStateLabel, STATE_NAMES } from "./call-names";

type CallView = Schemas["CallView"];

const NO_FILTER = { state: null, character: null, from: null, to: null };

/** Names of characters, to choose from. */
function CharacterNames({ id, partner }: { id: string; partner: string }) {
  const names = useResource(
    (call) => ask(api.GET("/api/characters/{partner}", { ...call, params: { path: { partner } } })),
    [partner],
    { partner, kinds: ["character"] },
  );
  return (
    <datalist id={id}>
      {names.data.value?.map(({ name }) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}

/** A field for the name of a character. What is typed counts when the field is left, on Enter, and as soon as it is a name of the list. */
function CharacterField({ value, onSet }: { value: string; onSet: (name: string) => void }) {
  const typed = useSignal(value);
  useEffect(() => {
    typed.value = value;
  }, [value]);
  const isListed = ({ list, value }: HTMLInputElement) => [...(list?.options ?? [])].some((option) => option.value === value);
  return (
    <input
      name="character"
      list="characters"
      autocomplete="off"
      placeholder="any"
      value={typed.value}
      onChange={(event) => onSet(event.currentTarget.value)}
      onInput={(event) => {
        typed.value = event.currentTarget.value;
        if (isListed(event.currentTarget)) onSet(typed.value);
      }}
      onKeyDown={(event) => event.key === "Enter" && onSet(event.currentTarget.value)}
    />
  );
}

function CallFilters({ partner, filter }: { partner: string; filter: CallFilter }) {
  return (
    <Filters label="Filter the calls">
      <StateFilter states={CALL_STATES} names={STATE_NAMES} value={filter.state} onSet={(state) => setQuery({ state })} />
      <label>
        Character
        <CharacterField value={filter.character ?? ""} onSet={(name) => setQuery({ character: name.trim() })} />
      </label>
      {may("characters") && <CharacterNames id="characters" partner={partner} />}
      <DaysFilter from={filter.from} to={filter.to} onSet={setQuery} />
      {isFiltered(filter) && (
        <button type="button" onClick={() => setQuery(NO_FILTER)}>
          Show all
        </button>
      )}
    </Filters>
  );
}

function Nothing({ partner, filter }: { partner: string; filter: CallFilter }) {
  if (isFiltered(filter)) {
    return (
      <Empty icon="search" title="No call matches">
        <p>Change the filters above, or show all calls.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="phone" title="No calls yet">
      <p>Calls appear here as soon as a page or a server begins one.</p>
      {may("keys") && (
        <p>
          <Link to={address(KEYS, { partner })}>Create a key</Link> for the page that calls.
        </p>
      )}
    </Empty>
  );
}

function Row({ partner, of, filter }: { partner: string; of: CallView; filter: CallFilter }) {
  const id = callId(of.id) ?? of.id;
  const { call_seconds: seconds } = of.duration;
  return (
    <tr>
      <th scope="row">
        <Link to={address(CALL, { partner, id }, filter)}>
          Call <code>{shortId(id)}</code>
        </Link>
      </th>
      <td>
        <CallStateLabel state={of.state} />
      </td>
      <td>
        <Time at={of.created_at} />
      </td>
      <td>
        <CallCharacter partner={partner} reference={of.character} />
      </td>
      <td class="number">{typeof seconds === "number" ? formatDuration(seconds) : <span class="none">—</span>}</td>
    </tr>
  );
}

export function Calls({ partner }: { partner: string }) {
  const filter = readFilter(query.value);
  const calls = usePages(
    async (call, cursor) => {
      const asked = { ...callQuery(filter, partner), ...(cursor !== undefined && { cursor }) };
      const { data, next_cursor } = await ask(api.GET("/v2/calls", { ...call, params: { query: asked } }));
      return { entries: data, next: next_cursor ?? null };
    },
    [partner, ...Object.values(filter)],
    { partner, kinds: ["call"] },
  );
  return (
    <>
      <CallFilters partner={partner} filter={filter} />
      <Shown of={calls}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing partner={partner} filter={filter} />
          ) : (
            <>
              <Table label="Calls">
                <thead>
                  <tr>
                    <th scope="col">Call</th>
                    <th scope="col">State</th>
                    <th scope="col">Created</th>
                    <th scope="col">Character</th>
                    <th scope="col" class="number">
                      Duration
                    </th>
                  </tr>
                </thead>
                <Rows of={entries} hasMore={next !== null} onView={calls.view}>
                  {(call) => <Row key={call.id} partner={partner} of={call} filter={filter} />}
                </Rows>
              </Table>
              <More next={next} isLoading={calls.isLoading.value} more={calls.more} isEndless={!calls.problem.value} />
            </>
          )
        }
      </Shown>
    </>
  );
}
