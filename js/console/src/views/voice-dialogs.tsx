// Dialogs that send recordings to the voice library: for a new voice, and for a sample.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { VOICE, address } from "../addresses";
import type { Schemas } from "../api";
import { Problem } from "../problem";
import { navigate, useStays } from "../router";
import { Dialog } from "../ui/dialog";
import { FileField, RECORDINGS } from "../ui/file-field";
import { Form } from "../ui/form";
import { notify } from "../ui/toasts";
import { type VoiceAt, libraryPath, voicePath } from "../voices/paths";
import { UploadProgress, useUpload } from "./upload-progress";

type Voice = Schemas["LibraryVoice"];

/** Returns the name of a file without its extension. */
const stem = (file: File) => file.name.replace(/\.[^.]*$/, "");

function RecordingFields({ file, name }: { file: Signal<File | null>; name: Signal<string> }) {
  useEffect(
    () =>
      file.subscribe((chosen) => {
        if (chosen && name.peek() === "") name.value = stem(chosen);
      }),
    [],
  );
  return (
    <>
      <FileField file={file} name="file" what="a recording" accept={RECORDINGS} />
      <p class="hint">Some minutes of one person, without music. The recording is split into samples, and these are embedded.</p>
    </>
  );
}

type NewVoiceProps = { partner: string; file: Signal<File | null>; onClose: () => void };

/** Creates a voice and goes to it. */
export function NewVoice({ partner, file, onClose }: NewVoiceProps) {
  const isEmpty = useSignal(false);
  const name = useSignal("");
  const { share, send } = useUpload();
  const stays = useStays();
  const create = async (fields: FormData) => {
    const body = new FormData();
    for (const field of ["name", "creator_name", "creator_email"]) {
      const text = String(fields.get(field) ?? "").trim();
      if (text !== "") body.append(field, text);
    }
    if (!isEmpty.value) {
      if (!file.value) throw new Problem(0, "invalid", "Choose a recording, or drop it here.", "file");
      body.append("file", file.value, file.value.name);
    }
    const made = await send<Voice>(isEmpty.value ? libraryPath(partner, "empty") : libraryPath(partner), body);
    if (!stays.isOpen()) return notify(`The voice ${made.name} is added`);
    onClose();
    navigate(address(VOICE, { partner, name: made.name }));
  };
  return (
    <Dialog title="Add a voice" onClose={onClose}>
      <Form action="Add" busy="Adding…" onSend={create} onCancel={onClose}>
        <fieldset class="segments">
          <legend class="hidden">Samples</legend>
          {[
            { isChosen: false, words: "From a recording" },
            { isChosen: true, words: "Empty" },
          ].map(({ isChosen, words }) => (
            <label key={words}>
              <input type="radio" name="kind" checked={isEmpty.value === isChosen} onChange={() => (isEmpty.value = isChosen)} />
              {words}
            </label>
          ))}
        </fieldset>
        {isEmpty.value ? (
          <p class="hint">An empty voice gets its samples one by one, of 1 to 60 seconds each.</p>
        ) : (
          <RecordingFields file={file} name={name} />
        )}
        <label>
          Name
          <input
            name="name"
            maxLength={255}
            required
            autocomplete="off"
            dir="auto"
            value={name.value}
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
        </label>
        <div class="fields">
          <label>
            Creator
            <input name="creator_name" maxLength={255} autocomplete="name" dir="auto" />
          </label>
          <label>
            E-mail of the creator
            <input name="creator_email" type="email" maxLength={254} autocomplete="email" />
          </label>
        </div>
        <UploadProgress share={share} />
      </Form>
    </Dialog>
  );
}

type AddSampleProps = { at: VoiceAt; file: Signal<File | null>; onDone: () => void; onClose: () => void };

export function AddSample({ at, file, onDone, onClose }: AddSampleProps) {
  const { share, send } = useUpload();
  const add = async () => {
    if (!file.value) throw new Problem(0, "invalid", "Choose a recording, or drop it here.", "file");
    const body = new FormData();
    body.append("file", file.value, file.value.name);
    await send<Schemas["VoiceSample"]>(voicePath(at, "samples"), body);
    onClose();
    onDone();
  };
  return (
    <Dialog title="Add a sample" onClose={onClose}>
      <Form action="Add" busy="Adding…" onSend={add} onCancel={onClose}>
        <FileField file={file} name="file" what="a recording of 1 to 60 seconds" accept={RECORDINGS} />
        <UploadProgress share={share} />
      </Form>
    </Dialog>
  );
}
