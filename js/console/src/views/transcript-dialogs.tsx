// Dialogs that create and delete transcripts.

import { type Signal, useSignal } from "@preact/signals";

import { TRANSCRIPT, address } from "../addresses";
import { api } from "../api";
import { jobId } from "../jobs/filter";
import { DETECT, LANGUAGES, type Options, type Transcript, optionsOf, recordingForm } from "../jobs/transcripts";
import { Problem, ask } from "../problem";
import { navigate, useStays } from "../router";
import { Dialog } from "../ui/dialog";
import { FileField, RECORDINGS } from "../ui/file-field";
import { Form } from "../ui/form";
import { notify } from "../ui/toasts";
import { UploadProgress, useUpload } from "./upload-progress";

function OptionFields() {
  return (
    <>
      <label>
        Language
        <select name="language_code" defaultValue="en_us">
          {LANGUAGES.map(([code, name]) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
          <option value={DETECT}>Detect the language</option>
        </select>
      </label>
      <details>
        <summary>Options</summary>
        <label class="box">
          <input type="checkbox" name="format_text" defaultChecked /> Capital letters and punctuation
        </label>
        <label class="box">
          <input type="checkbox" name="filler_words" /> Keep filler words such as “um”
        </label>
        <label>
          Expected terms, one a line
          <textarea name="boosted_words" rows={3} dir="auto" />
          <span class="hint">Names and technical terms that are likelier to be recognized; up to 100.</span>
        </label>
      </details>
    </>
  );
}

type NewTranscriptProps = { partner: string; file: Signal<File | null>; onClose: () => void };

/** Creates a transcript and goes to it. */
export function NewTranscript({ partner, file, onClose }: NewTranscriptProps) {
  const isAddress = useSignal(false);
  // The address stays when the source is changed and changed back.
  const typed = useSignal("");
  const { share, send } = useUpload();
  const stays = useStays();
  const sendFile = (options: Options) => {
    if (!file.value) throw new Problem(0, "invalid", "Choose a recording, or drop it here.", "audio");
    const path = `/v2/transcript?${new URLSearchParams({ partner }).toString()}`;
    return send<Transcript>(path, recordingForm(file.value, options));
  };
  const create = async (fields: FormData) => {
    const options = optionsOf(fields);
    const params = { query: { partner } };
    const made = isAddress.value
      ? await ask(api.POST("/v2/transcript", { params, body: { audio_url: typed.value.trim(), ...options } }))
      : await sendFile(options);
    if (!stays.isOpen()) return notify("The recording is being transcribed");
    onClose();
    navigate(address(TRANSCRIPT, { partner, id: jobId(made.id) }));
  };
  return (
    <Dialog title="Transcribe a recording" onClose={onClose}>
      <Form action="Transcribe" busy="Sending…" onSend={create} onCancel={onClose}>
        <fieldset class="segments">
          <legend class="hidden">Source</legend>
          {[
            { isChosen: false, words: "File" },
            { isChosen: true, words: "Address" },
          ].map(({ isChosen, words }) => (
            <label key={words}>
              <input type="radio" name="kind" checked={isAddress.value === isChosen} onChange={() => (isAddress.value = isChosen)} />
              {words}
            </label>
          ))}
        </fieldset>
        {isAddress.value ? (
          <label>
            Public address of the recording
            <input
              type="url"
              name="audio_url"
              required
              placeholder="https://www.example.com/meeting.mp3"
              value={typed.value}
              onInput={(event) => (typed.value = event.currentTarget.value)}
            />
          </label>
        ) : (
          <FileField file={file} name="audio" what="a recording" accept={RECORDINGS} />
        )}
        <OptionFields />
        <UploadProgress share={share} />
      </Form>
    </Dialog>
  );
}

type DeleteProps = {
  id: string;
  /** Path of the list. */
  list: string;
  onClose: () => void;
};

export function DeleteTranscript({ id, list, onClose }: DeleteProps) {
  const stays = useStays();
  const remove = async () => {
    await ask(api.DELETE("/v2/transcript/{id}", { params: { path: { id } } }));
    onClose();
    notify("The transcript is deleted");
    if (stays.isHere()) navigate(list);
  };
  return (
    <Dialog title="Delete the transcript?" onClose={onClose}>
      <p>Its text is deleted, and the recording if that is kept. This cannot be undone.</p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}
