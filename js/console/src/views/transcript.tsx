// One transcript of a recording: its state, its text, and another attempt if it failed.

import { useSignal } from "@preact/signals";

import { TRANSCRIPTS, address } from "../addresses";
import { api } from "../api";
import { filterParameters, readJobFilter, sentence } from "../jobs/filter";
import { STATUSES, type Transcript as View } from "../jobs/transcripts";
import { ask } from "../problem";
import { query } from "../router";
import { Action } from "../ui/action";
import { Back } from "../ui/back";
import { formatDuration, languageName } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { notify } from "../ui/toasts";
import { JobFacts } from "./job-facts";
import { DeleteTranscript } from "./transcript-dialogs";
import { LongText } from "./document-text";
import { StatusLabel } from "./transcripts";

type Props = { partner: string; id: string };

function Facts({ id, of }: { id: string; of: View }) {
  return (
    <JobFacts
      id={id}
      of={of}
      state={<StatusLabel status={of.status} />}
      reason={of.error && sentence(of.error)}
      more={[
        ["Length of the recording", typeof of.audio_duration === "number" && formatDuration(of.audio_duration)],
        ["Detected language", of.language_code && languageName(of.language_code)],
      ]}
    />
  );
}

const NO_TEXT: Partial<Record<View["status"], string>> = {
  queued: "The recording waits for its turn.",
  processing: "The recording is being transcribed. The text appears here.",
};

function Body({ of }: { of: View }) {
  if (of.status === "completed") return of.text ? <LongText text={of.text} /> : <p class="none">Nobody speaks in the recording.</p>;
  if (of.status !== "error") return <p class="none">{NO_TEXT[of.status]}</p>;
  return (
    <p class="none">
      {of.retryable
        ? "The recording is kept until the transcript is deleted. What was heard before the failure is not heard, or paid for, again."
        : "The reason stays, so the recording is not kept. Send it again as a new transcript."}
    </p>
  );
}

export function Transcript({ partner, id }: Props) {
  const isDeleting = useSignal(false);
  const transcript = useResource((call) => ask(api.GET("/v2/transcript/{id}", { ...call, params: { path: { id } } })), [id], {
    partner,
    kinds: ["transcript"],
    id,
  });
  const retry = async () => {
    await ask(api.POST("/v2/transcript/{id}/retry", { params: { path: { id } } }));
    notify("The transcript is queued again");
    await transcript.reload();
  };
  const list = address(TRANSCRIPTS, { partner }, filterParameters(readJobFilter(query.value, STATUSES)));
  return (
    <>
      <Back to={list}>All transcripts</Back>
      <Shown of={transcript}>
        {(found) => (
          <>
            <Facts id={id} of={found} />
            {(found.status === "completed" || found.status === "error") && (
              <div class="actions start">
                {found.retryable && <Action icon="refresh-cw" label="Try again" busy="Queueing…" onRun={retry} />}
                <button type="button" onClick={() => (isDeleting.value = true)}>
                  <Icon name="trash-2" /> Delete…
                </button>
              </div>
            )}
            <h2>Text</h2>
            <Body of={found} />
          </>
        )}
      </Shown>
      {isDeleting.value && <DeleteTranscript id={id} list={list} onClose={() => (isDeleting.value = false)} />}
    </>
  );
}
