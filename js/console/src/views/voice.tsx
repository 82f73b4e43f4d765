// One voice: what it was made from, where processing stands, and its samples.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { VOICES, address } from "../addresses";
import { type Schemas, api } from "../api";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { Action } from "../ui/action";
import { Back } from "../ui/back";
import { Explained } from "../ui/explained";
import { formatDuration } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { saveFile } from "../voices/library";
import { type VoiceAt, pathOfType, voicePath } from "../voices/paths";
import { isLocked, splitShare } from "../voices/words";
import { useDrop } from "./document-drop";
import { DeleteSample, DeleteVoice, EmbedVoice, RenameVoice, SplitVoice } from "./voice-changes";
import { AddSample } from "./voice-dialogs";
import { Samples } from "./voice-samples";

type Voice = Schemas["LibraryVoice"];
type Open = "rename" | "delete" | "split" | "embed" | "add" | null;

const SPEAKS_MEANS =
  "The voice of the synthesizer that speaks: the one that suits the preferred sample, or else all samples. Only other workers than this server clone.";

function Facts({ of }: { of: Voice }) {
  const { embedding_info: info, original_duration: duration } = of;
  return (
    <dl>
      <dt>Made from</dt>
      <dd dir="auto">
        {of.original_filename ? (of.original_uploaded_name ?? of.original_filename) : "samples that were added one by one"}
        {typeof duration === "number" && `, ${formatDuration(duration)}`}
      </dd>
      <dt>
        <Explained as={SPEAKS_MEANS}>Speaks as</Explained>
      </dt>
      <dd>{of.synthesizer_voice ? <code>{of.synthesizer_voice}</code> : <span class="none">does not speak</span>}</dd>
      <dt>Embedded</dt>
      <dd>
        {info?.last_update_status === "completed" ? (
          <>
            for <code>{info.tts_type}</code>, <Time at={info.last_update_time} />
          </>
        ) : (
          <span class="none">no</span>
        )}
      </dd>
      {(of.creator_name || of.creator_email) && (
        <>
          <dt>Creator</dt>
          <dd dir="auto">{[of.creator_name, of.creator_email].filter(Boolean).join(", ")}</dd>
        </>
      )}
    </dl>
  );
}

function Processing({ of }: { of: Voice }) {
  const { splitting, embedding, splitting_error, embedding_error } = of.status;
  const share = splitShare(of);
  if (splitting === "in_progress") {
    return (
      <section class="progress-panel" aria-label="Splitting">
        <header>
          <strong>Splitting the recording</strong>
          <span role="status">{counted(of.samples.length, "sample")} so far</span>
        </header>
        <progress max={1} {...(share !== null && { value: share })} aria-label="Splitting" />
      </section>
    );
  }
  if (embedding === "in_progress") {
    return (
      <section class="progress-panel" aria-label="Embedding">
        <header>
          <strong>Embedding the samples</strong>
          <span role="status">
            since <Time at={of.embedding_info?.last_update_time} />
          </span>
        </header>
        <progress aria-label="Embedding" />
      </section>
    );
  }
  return (
    <>
      {splitting === "failed" && <p class="reason">Splitting failed: {splitting_error ?? "the reason is not known"}</p>}
      {embedding === "failed" && <p class="reason">Embedding failed: {embedding_error ?? "the reason is not known"}</p>}
    </>
  );
}

function Actions({ at, of, onOpen }: { at: VoiceAt; of: Voice; onOpen: (what: Open) => void }) {
  const info = of.embedding_info;
  const locked = isLocked(of);
  const zip = of.embedding_zip_url && info ? info.tts_type : null;
  const embedding = zip === null ? "" : pathOfType(at, zip, "embedding.zip");
  return (
    <div class="actions start">
      {!locked && (
        <>
          {!of.original_filename && (
            <button type="button" onClick={() => onOpen("add")}>
              <Icon name="plus" /> Add a sample
            </button>
          )}
          {of.original_filename && (
            <button type="button" onClick={() => onOpen("split")}>
              <Icon name="scissors" /> Split again…
            </button>
          )}
          {of.samples.length > 0 && (
            <button type="button" onClick={() => onOpen("embed")}>
              <Icon name="wand-sparkles" /> Embed…
            </button>
          )}
          <button type="button" onClick={() => onOpen("rename")}>
            <Icon name="pencil" /> Rename…
          </button>
        </>
      )}
      {of.samples.length > 0 && (
        <Action
          icon="download"
          label="Download the samples"
          busy="Downloading…"
          onRun={() => saveFile(voicePath(at, "samples-bundle"), `${at.name}.zip`)}
        />
      )}
      {zip !== null && (
        <Action icon="download" label="Download the embedding" busy="Downloading…" onRun={() => saveFile(embedding, `${at.name}-${zip}.zip`)} />
      )}
      {!locked && (
        <button type="button" onClick={() => onOpen("delete")}>
          <Icon name="trash-2" /> Delete…
        </button>
      )}
    </div>
  );
}

export function Voice({ partner, name }: { partner: string; name: string }) {
  const at = { partner, name };
  const area = useRef<HTMLDivElement>(null);
  const voice = useResource(
    (call) => ask(api.GET("/api/voices/{partner}/{voice}", { ...call, params: { path: { partner, voice: name } } })),
    [partner, name],
    { partner, kinds: ["voice"], id: name },
  );
  const open = useSignal<Open>(null);
  const file = useSignal<File | null>(null);
  const deleting = useSignal<number | null>(null);
  const shown = voice.data.value;
  const takesSamples = shown !== undefined && !shown.original_filename && !isLocked(shown);
  const isOver = useDrop(area, ({ files: [first] }) => {
    if (!first || !takesSamples || open.peek() !== null) return;
    file.value = first;
    open.value = "add";
  });
  const reload = () => void voice.reload();
  const close = () => (open.value = null);
  const show = (what: Open) => {
    file.value = null;
    open.value = what;
  };
  return (
    <div ref={area} class={`documents ${isOver.value && takesSamples ? "over" : ""}`}>
      <Back to={address(VOICES, { partner })}>All voices</Back>
      <Shown of={voice}>
        {(found) => (
          <>
            <Processing of={found} />
            <Facts of={found} />
            <Actions at={at} of={found} onOpen={show} />
            <h2>{counted(found.samples.length, "sample")}</h2>
            <Samples at={at} of={found} onChanged={voice.reload} onDelete={(index) => (deleting.value = index)} />
          </>
        )}
      </Shown>
      {open.value === "rename" && <RenameVoice at={at} onClose={close} />}
      {open.value === "split" && <SplitVoice at={at} onDone={reload} onClose={close} />}
      {open.value === "embed" && <EmbedVoice at={at} type={shown?.embedding_type ?? null} onDone={reload} onClose={close} />}
      {open.value === "add" && <AddSample at={at} file={file} onDone={reload} onClose={close} />}
      {open.value === "delete" && <DeleteVoice at={at} list={address(VOICES, { partner })} onDone={() => {}} onClose={close} />}
      {deleting.value !== null && <DeleteSample at={at} index={deleting.value} onDone={reload} onClose={() => (deleting.value = null)} />}
    </div>
  );
}
