// The transcripts of recordings of a partner, newest first.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { TRANSCRIPT, address } from "../addresses";
import { api } from "../api";
import { shortId } from "../calls/names";
import { type JobFilter, filterParameters, jobId, jobQuery, readJobFilter, sentence } from "../jobs/filter";
import { STATUSES, STATUS_CLASSES, STATUS_NAMES, type Status, type Transcript } from "../jobs/transcripts";
import { ask } from "../problem";
import { Link, query } from "../router";
import { formatDuration, languageName } from "../ui/format";
import { Icon } from "../ui/icon";
import { ABSENT, type Column, List } from "../ui/list";
import { usePages } from "../ui/resource";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";
import { useDrop } from "./document-drop";
import { NoJobs } from "./job-facts";
import { JobFilters } from "./job-filters";
import { NewTranscript } from "./transcript-dialogs";

export function StatusLabel({ status }: { status: Status }) {
  return <span class={`state ${STATUS_CLASSES[status]}`}>{STATUS_NAMES[status]}</span>;
}

function columnsOf(partner: string, filter: JobFilter<Status>): Column<Transcript>[] {
  return [
    {
      title: "Transcript",
      cell: ({ id }) => (
        <Link to={address(TRANSCRIPT, { partner, id: jobId(id) }, filterParameters(filter))}>
          Transcript <code>{shortId(jobId(id))}</code>
        </Link>
      ),
    },
    {
      title: "State",
      cell: ({ status, error }) => (
        <>
          <StatusLabel status={status} />
          {error && <p class="reason job-error">{sentence(error)}</p>}
        </>
      ),
    },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
    { title: "Length", isNumber: true, cell: ({ audio_duration: length }) => (typeof length === "number" ? formatDuration(length) : ABSENT) },
    { title: "Detected language", cell: ({ language_code: code }) => (code ? languageName(code) : ABSENT) },
  ];
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
      <List of={transcripts} label="Transcripts" columns={columnsOf(partner, filter)} keyOf={({ id }) => id}>
        <NoJobs filter={filter} noun="transcript" plural="transcripts">
          <Empty icon="file-text" title="No transcripts yet">
            <p>A transcript is the text of a recording: of a file, or of an address.</p>
            <button type="button" class="primary" onClick={() => add(null)}>
              <Icon name="plus" /> Transcribe a recording
            </button>
          </Empty>
        </NoJobs>
      </List>
      {isAdding.value && <NewTranscript partner={partner} file={file} onClose={() => (isAdding.value = false)} />}
    </div>
  );
}
