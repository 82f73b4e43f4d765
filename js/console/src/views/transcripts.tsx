// The transcripts of recordings of a partner, newest first.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { TRANSCRIPT, address } from "../addresses";
import { api } from "../api";
import { shortId } from "../calls/names";
import { type JobFilter, filterParameters, isFiltered, jobId, jobQuery, readJobFilter, sentence } from "../jobs/filter";
import { STATUSES, STATUS_CLASSES, STATUS_NAMES, type Status, type Transcript } from "../jobs/transcripts";
import { ask } from "../problem";
import { Link, query } from "../router";
import { formatDuration, languageName } from "../ui/format";
import { Icon } from "../ui/icon";
import { usePages } from "../ui/resource";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { useDrop } from "./document-drop";
import { JobFilters } from "./job-filters";
import { NewTranscript } from "./transcript-dialogs";

export function StatusLabel({ status }: { status: Status }) {
  return <span class={`state ${STATUS_CLASSES[status]}`}>{STATUS_NAMES[status]}</span>;
}

function Row({ partner, of, filter }: { partner: string; of: Transcript; filter: JobFilter<Status> }) {
  const id = jobId(of.id);
  return (
    <tr>
      <th scope="row">
        <Link to={address(TRANSCRIPT, { partner, id }, filterParameters(filter))}>
          Transcript <code>{shortId(id)}</code>
        </Link>
      </th>
      <td>
        <StatusLabel status={of.status} />
        {of.error && <p class="reason job-error">{sentence(of.error)}</p>}
      </td>
      <td>
        <Time at={of.created_at} />
      </td>
      <td class="number">{typeof of.audio_duration === "number" ? formatDuration(of.audio_duration) : <span class="none">—</span>}</td>
      <td>{of.language_code ? languageName(of.language_code) : <span class="none">—</span>}</td>
    </tr>
  );
}

function Nothing({ filter, onAdd }: { filter: JobFilter<Status>; onAdd: () => void }) {
  if (isFiltered(filter)) {
    return (
      <Empty icon="search" title="No transcript matches">
        <p>Change the filters above, or show all transcripts.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="file-text" title="No transcripts yet">
      <p>A transcript is the text of a recording: of a file, or of an address.</p>
      <button type="button" class="primary" onClick={onAdd}>
        <Icon name="plus" /> Transcribe a recording
      </button>
    </Empty>
  );
}

export function Transcripts({ partner }: { partner: string }) {
  const area = useRef<HTMLDivElement>(null);
  const filter = readJobFilter(query.value, STATUSES);
  const transcripts = usePages(
    async (call, cursor) => {
      const asked = { ...jobQuery(filter, partner, "status"), ...(cursor !== undefined && { cursor }) };
      const { data, next_cursor } = await ask(api.GET("/v2/transcript", { ...call, params: { query: asked } }));
      return { entries: data, next: next_cursor ?? null };
    },
    [partner, filter.states.join(), filter.from, filter.to],
    { partner, kinds: ["transcript"] },
  );
  const isAdding = useSignal(false);
  const file = useSignal<File | null>(null);
  const add = (dropped: File | null) => {
    file.value = dropped;
    isAdding.value = true;
  };
  const isOver = useDrop(area, ({ files: [first] }) => {
    if (first && !isAdding.peek()) add(first);
  });
  return (
    <div ref={area} class={`documents ${isOver.value ? "over" : ""}`}>
      {isOver.value && <p class="drop">Drop a recording to transcribe it</p>}
      <div class="toolbar">
        <JobFilters label="Filter the transcripts" states={STATUSES} names={STATUS_NAMES} filter={filter} />
        <button type="button" class="primary" onClick={() => add(null)}>
          <Icon name="plus" /> Transcribe a recording
        </button>
      </div>
      <Shown of={transcripts}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing filter={filter} onAdd={() => add(null)} />
          ) : (
            <>
              <Table label="Transcripts">
                <thead>
                  <tr>
                    <th scope="col">Transcript</th>
                    <th scope="col">State</th>
                    <th scope="col">Created</th>
                    <th scope="col" class="number">
                      Length
                    </th>
                    <th scope="col">Detected language</th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((transcript) => (
                    <Row key={transcript.id} partner={partner} of={transcript} filter={filter} />
                  ))}
                </tbody>
              </Table>
              <More next={next} isLoading={transcripts.isLoading.value} more={transcripts.more} />
            </>
          )
        }
      </Shown>
      {isAdding.value && <NewTranscript partner={partner} file={file} onClose={() => (isAdding.value = false)} />}
    </div>
  );
}
