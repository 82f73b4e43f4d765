// The voice library of a partner, by name.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { VOICE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { FilterField } from "../knowledge/controls";
import { ask } from "../problem";
import { Link, query, setQuery } from "../router";
import { Filters } from "../ui/filters";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { RowAction } from "../ui/row-action";
import { Empty, Shown, Table } from "../ui/states";
import { stateOf } from "../voices/words";
import { useDrop } from "./document-drop";
import { DeleteVoice } from "./voice-changes";
import { NewVoice } from "./voice-dialogs";

type Voice = Schemas["ListedVoice"];

function Row({ partner, of, onDelete }: { partner: string; of: Voice; onDelete: () => void }) {
  const { text, kind } = stateOf(of);
  return (
    <tr>
      <th scope="row" class="name">
        <Link to={address(VOICE, { partner, name: of.name })}>
          <bdi>{of.name}</bdi>
        </Link>
      </th>
      <td>
        <span class={`state ${kind}`}>{text}</span>
      </td>
      <td class="number">{formatNumber(of.sample_count)}</td>
      <td>{of.has_original ? "recording" : <span class="none">samples only</span>}</td>
      <td class="name" dir="auto">
        {of.creator_name ?? <span class="none">—</span>}
      </td>
      <td class="row-actions">
        <div>
          {kind !== "busy" && <RowAction icon="trash-2" label={`Delete ${of.name}`} onClick={onDelete} />}
        </div>
      </td>
    </tr>
  );
}

function Nothing({ isFiltered, onAdd }: { isFiltered: boolean; onAdd: () => void }) {
  if (isFiltered) {
    return (
      <Empty icon="search" title="No voice matches">
        <button type="button" onClick={() => setQuery({ q: null })}>
          Show all
        </button>
      </Empty>
    );
  }
  return (
    <Empty icon="audio-lines" title="No voices yet">
      <p>A voice is made from a recording of a person. Characters and the speech interface can speak with it.</p>
      <button type="button" class="primary" onClick={onAdd}>
        <Icon name="plus" /> Add a voice
      </button>
    </Empty>
  );
}

export function Voices({ partner }: { partner: string }) {
  const area = useRef<HTMLDivElement>(null);
  const q = query.value.get("q") ?? "";
  const voices = useResource((call) => ask(api.GET("/api/voices/{partner}", { ...call, params: { path: { partner } } })), [partner], {
    partner,
    kinds: ["voice"],
  });
  const isAdding = useSignal(false);
  const file = useSignal<File | null>(null);
  const deleting = useSignal<Voice | null>(null);
  const add = () => {
    file.value = null;
    isAdding.value = true;
  };
  const isOver = useDrop(area, ({ files: [first] }) => {
    if (!first || isAdding.peek()) return;
    file.value = first;
    isAdding.value = true;
  });
  const wanted = q.trim().toLowerCase();
  return (
    <div ref={area} class={`documents ${isOver.value ? "over" : ""}`}>
      {isOver.value && <p class="drop">Drop a recording to make a voice of it</p>}
      <div class="toolbar">
        <Filters label="Filter the voices">
          <FilterField name="q" label="Name" value={q || null} onSet={(text) => setQuery({ q: text })} />
        </Filters>
        <button type="button" class="primary" onClick={add}>
          <Icon name="plus" /> Add a voice
        </button>
      </div>
      <Shown of={voices}>
        {(all) => {
          const found = all.filter(({ name }) => name.toLowerCase().includes(wanted));
          if (found.length === 0) return <Nothing isFiltered={wanted !== ""} onAdd={add} />;
          return (
            <Table label="Voices">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">State</th>
                  <th scope="col" class="number">
                    Samples
                  </th>
                  <th scope="col">Made from</th>
                  <th scope="col">Creator</th>
                  <th scope="col">
                    <span class="hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.map((voice) => (
                  <Row key={voice.name} partner={partner} of={voice} onDelete={() => (deleting.value = voice)} />
                ))}
              </tbody>
            </Table>
          );
        }}
      </Shown>
      {isAdding.value && <NewVoice partner={partner} file={file} onClose={() => (isAdding.value = false)} />}
      {deleting.value && (
        <DeleteVoice
          at={{ partner, name: deleting.value.name }}
          onDone={() => void voices.reload()}
          onClose={() => (deleting.value = null)}
        />
      )}
    </div>
  );
}
