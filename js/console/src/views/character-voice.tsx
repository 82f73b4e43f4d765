// The voice of a character, with a way to hear it.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { may } from "../api";
import { voiceOf, withVoice } from "../characters/draft";
import { voiceWords } from "../characters/voice-words";
import { MAX_SPOKEN, type Voices, readVoices, speak } from "../characters/voices";
import { toProblem } from "../problem";
import { Field } from "../ui/field";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { type DraftForm, Section, errorsOf } from "./character-form";

const SAMPLE = "Hello. It is nice to meet you.";

/** A sentence that the voice speaks. `first` is what it says unless somebody types another. */
function Preview({ voices, id, speed, first }: { voices: Voices; id: string; speed: number | null; first: string }) {
  const typed = useSignal<string | null>(null);
  const sound = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const failure = useSignal("");
  const running = useRef(new AbortController());
  const replace = (next: string | null) => {
    if (sound.peek()) URL.revokeObjectURL(sound.peek() ?? "");
    sound.value = next;
  };
  useEffect(
    () => () => {
      running.current.abort();
      replace(null);
    },
    [],
  );
  // The sound that was heard is not that of another voice.
  useEffect(() => {
    running.current.abort();
    replace(null);
    failure.value = "";
  }, [id, speed]);
  const text = typed.value ?? first;
  const listen = async () => {
    if (isBusy.value || id === "" || text.trim() === "") return;
    [isBusy.value, failure.value] = [true, ""];
    running.current = new AbortController();
    const { signal } = running.current;
    try {
      const blob = await speak(voices.model, id, text, speed, signal);
      if (!signal.aborted) replace(URL.createObjectURL(blob));
    } catch (error) {
      if (!signal.aborted) failure.value = toProblem(error).message;
    }
    isBusy.value = false;
  };
  return (
    <div class="voice-preview">
      <Field label="A sentence to hear" errors={failure.value ? [failure.value] : []} {...(id === "" && { hint: "Choose a voice to hear it." })}>
        {(control) => (
          <textarea {...control} name="sample" rows={2} dir="auto" maxLength={MAX_SPOKEN} value={text} onInput={(event) => (typed.value = event.currentTarget.value)} />
        )}
      </Field>
      <button type="button" aria-disabled={isBusy.value || id === ""} onClick={() => void listen()}>
        <Icon name="play" /> {isBusy.value ? "Speaking…" : "Listen"}
      </button>
      {sound.value && <audio src={sound.value} controls autoplay aria-label="The sentence, spoken" />}
    </div>
  );
}

function VoiceFields({ form, voices, first }: { form: DraftForm; voices: Voices | undefined; first: string }) {
  const { id, speed } = voiceOf(form.draft);
  const setId = (chosen: string) => form.set(withVoice(form.draft, { id: chosen, speed }));
  const setSpeed = (value: string) => form.set(withVoice(form.draft, { id, speed: value === "" || !Number.isFinite(Number(value)) ? null : Number(value) }));
  const isListed = voices?.voices.some((voice) => voice.id === id) ?? false;
  const errors = [...errorsOf(form, "parameters.voice"), ...errorsOf(form, "parameters.voice.id"), ...errorsOf(form, "parameters.voice.language")];
  return (
    <>
      <div class="field-grid">
        {voices && !voices.may_have_others ? (
          <Field label="Voice" errors={errors}>
            {(control) => (
              <select {...control} name="voice" value={id} onChange={(event) => setId(event.currentTarget.value)}>
                <option value="">the server's</option>
                {id !== "" && !isListed && <option value={id}>{id} (not found)</option>}
                {voices.voices.map((voice) => (
                  <option key={voice.id} value={voice.id}>
                    {voiceWords(voice)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        ) : (
          <Field label="Voice" hint="The id of a voice; empty for the server's." errors={errors}>
            {(control) => (
              <>
                <input {...control} name="voice" list="voices" autocomplete="off" value={id} onInput={(event) => setId(event.currentTarget.value)} />
                <datalist id="voices">
                  {voices?.voices.map((voice) => (
                    <option key={voice.id} value={voice.id}>
                      {voiceWords(voice)}
                    </option>
                  ))}
                </datalist>
              </>
            )}
          </Field>
        )}
        <Field label="Speed" hint="0.5 to 1.5; empty for the usual one." errors={errorsOf(form, "parameters.voice.speed")}>
          {(control) => (
            <input {...control} name="speed" type="number" min={0.5} max={1.5} step={0.05} value={speed ?? ""} onInput={(event) => setSpeed(event.currentTarget.value)} />
          )}
        </Field>
      </div>
      {voices && <Preview voices={voices} id={id} speed={speed} first={first} />}
    </>
  );
}

/** The voices need a scope of their own; without it, an id can be typed. */
function HeardVoice({ form, first }: { form: DraftForm; first: string }) {
  const voices = useResource((call) => readVoices(call, form.partner), [form.partner], { partner: form.partner, kinds: ["voice"] });
  return (
    <>
      <VoiceFields form={form} voices={voices.data.value} first={first} />
      {voices.problem.value && <p class="hint">The voices cannot be listed: {voices.problem.value.message}</p>}
    </>
  );
}

/** `greeting` is the first greeting as a call says it. */
export function Voice({ form, greeting }: { form: DraftForm; greeting: string | undefined }) {
  const first = greeting || SAMPLE;
  return <Section title="Voice">{may("speech") ? <HeardVoice form={form} first={first} /> : <VoiceFields form={form} voices={undefined} first={first} />}</Section>;
}
