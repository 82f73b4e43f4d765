// The samples of a voice: their sound, their scores, the preferred one, and their test sentences.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { type Schemas, api } from "../api";
import { multipart } from "../knowledge/forms";
import { counted } from "../knowledge/words";
import { Latest } from "../latest";
import { ask } from "../problem";
import { Explained } from "../ui/explained";
import { formatDuration, formatFraction } from "../ui/format";
import { RowAction } from "../ui/row-action";
import { Empty } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import { type VoiceAt, pathOfType, voicePath } from "../voices/paths";
import { isLocked } from "../voices/words";
import { SoundPlayer } from "./voice-sound";

type Voice = Schemas["LibraryVoice"];
type Sample = Schemas["VoiceSample"];

const SCORE_MEANS =
  "From 0 to 1, the best: how much the sample is like all samples of the voice, up to half less if it is noisy. Other workers have scores of their own.";

function Score({ value }: { value: number }) {
  return (
    <span class="score">
      <Explained as={SCORE_MEANS}>score {formatFraction(value, 2)}</Explained>
      <progress max={1} value={value} aria-hidden="true" />
    </span>
  );
}

function TestSentences({ at, type, of }: { at: VoiceAt; type: string; of: Schemas["TestSample"][] }) {
  const isOpen = useSignal(false);
  if (of.length === 0) return null;
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{counted(of.length, "test sentence")}</summary>
      {isOpen.value && (
        <ul class="sentences">
          {of.map(({ filename, sample_index, sentence_index }) => (
            <li key={filename}>
              <SoundPlayer
                path={pathOfType(at, type, "test-samples", filename)}
                name={`sentence ${sentence_index} of sample ${sample_index}`}
              />
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}

type SampleProps = { at: VoiceAt; of: Voice; sample: Sample; isPreferred: boolean; onPrefer: () => void; onDelete: () => void };

function SampleCard({ at, of, sample: { index, source_timestamp: begin, duration }, isPreferred, onPrefer, onDelete }: SampleProps) {
  const info = of.embedding_info;
  const tests = info?.test_samples.filter((one) => one.sample_index === index) ?? [];
  const score = info?.sample_scores.find((one) => one.sample_index === index)?.score;
  const locked = isLocked(of);
  return (
    <li class={isPreferred ? "preferred" : ""}>
      <header>
        <h3>Sample {index}</h3>
        <span class="hint">
          {of.original_filename ? `from ${begin}, ` : ""}
          {formatDuration(duration)}
        </span>
        {typeof score === "number" && <Score value={score} />}
        <label class="prefer">
          <input type="radio" name={`preferred-${at.name}`} checked={isPreferred} disabled={locked} onChange={onPrefer} /> Preferred
        </label>
        {!locked && <RowAction icon="trash-2" label={`Delete sample ${index}`} onClick={onDelete} />}
      </header>
      <SoundPlayer path={voicePath(at, "samples", index)} name={`sample ${index}`} duration={duration} />
      {info && <TestSentences key={info.last_update_time} at={at} type={info.tts_type} of={tests} />}
    </li>
  );
}

type SamplesProps = { at: VoiceAt; of: Voice; onChanged: () => Promise<void>; onDelete: (index: number) => void };

export function Samples({ at, of, onChanged, onDelete }: SamplesProps) {
  /** The choice that is being saved; undefined while none is. */
  const chosen = useSignal<number | null | undefined>(undefined);
  const preferred = chosen.value === undefined ? (of.preferred_sample_index ?? null) : chosen.value;
  const save = async (index: number | null) => {
    const path = { partner: at.partner, voice: at.name };
    // An empty number takes the preference away.
    const body = { sample_index: index ?? ("" as unknown as number) };
    await ask(api.PUT("/api/voices/{partner}/{voice}/preferred-sample", { params: { path }, body, bodySerializer: multipart }));
  };
  const choices = useRef(
    new Latest<number | null>(async (index, isLast) => {
      const error: unknown = await save(index).then(() => null, (failure: unknown) => failure);
      if (!isLast()) return;
      if (error) notifyFailure(error);
      else notify(index === null ? "No sample is preferred" : `Sample ${index} is preferred`);
      await onChanged();
      if (isLast()) chosen.value = undefined;
    }),
  ).current;
  const prefer = (index: number | null) => {
    chosen.value = index;
    choices.set(index);
  };
  if (of.samples.length === 0) {
    return (
      <Empty icon="audio-lines" title="No samples">
        {!of.original_filename && <p>Add samples of 1 to 60 seconds, then embed the voice.</p>}
      </Empty>
    );
  }
  // Another load for the same number after a split: samples are numbered anew.
  const made = of.samples.map(({ source_timestamp, duration }) => `${source_timestamp} ${duration}`);
  return (
    <>
      {preferred !== null && !isLocked(of) && (
        <p>
          <button type="button" onClick={() => prefer(null)}>
            Prefer no sample
          </button>
        </p>
      )}
      <ol class="samples">
        {of.samples.map((sample, place) => (
          <SampleCard
            key={`${sample.index} ${made[place]}`}
            at={at}
            of={of}
            sample={sample}
            isPreferred={sample.index === preferred}
            onPrefer={() => prefer(sample.index)}
            onDelete={() => onDelete(sample.index)}
          />
        ))}
      </ol>
    </>
  );
}
