// Dialogs that change and delete voices.

import { VOICE, address } from "../addresses";
import { api } from "../api";
import { multipart } from "../knowledge/forms";
import { ask } from "../problem";
import { navigate, useStays } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { notify } from "../ui/toasts";
import type { VoiceAt } from "../voices/paths";

type ChangeProps = { at: VoiceAt; onDone: () => void; onClose: () => void };

export function RenameVoice({ at, onClose }: Omit<ChangeProps, "onDone">) {
  const stays = useStays();
  const rename = async (fields: FormData) => {
    const name = String(fields.get("name")).trim();
    const path = { partner: at.partner, voice: at.name };
    const renamed = await ask(api.PUT("/api/voices/{partner}/{voice}/name", { params: { path }, body: { name }, bodySerializer: multipart }));
    onClose();
    notify(`The voice is called ${renamed.name} now`);
    if (stays.isHere()) navigate(address(VOICE, { partner: at.partner, name: renamed.name }), { replace: true });
  };
  return (
    <Dialog title={`Rename the voice ${at.name}`} onClose={onClose}>
      <p>Characters that speak with the voice name it, and have to be changed, too.</p>
      <Form action="Rename" busy="Renaming…" onSend={rename} onCancel={onClose}>
        <label>
          Name
          <input name="name" maxLength={255} required autocomplete="off" dir="auto" defaultValue={at.name} />
        </label>
      </Form>
    </Dialog>
  );
}

type DeleteVoiceProps = ChangeProps & {
  /** Path to go to from the page of the voice. */
  list?: string;
};

export function DeleteVoice({ at, list, onDone, onClose }: DeleteVoiceProps) {
  const stays = useStays();
  const remove = async () => {
    await ask(api.DELETE("/api/voices/{partner}/{voice}", { params: { path: { partner: at.partner, voice: at.name } } }));
    onClose();
    notify(`The voice ${at.name} is deleted`);
    onDone();
    if (list !== undefined && stays.isHere()) navigate(list);
  };
  return (
    <Dialog title={`Delete the voice ${at.name}?`} onClose={onClose}>
      <p>
        Its recording, its samples and what was made of them are deleted with it. This cannot be undone. Characters that speak with it get the default
        voice.
      </p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}

export function SplitVoice({ at, onDone, onClose }: ChangeProps) {
  const split = async (fields: FormData) => {
    const body = { max_samples: Number(fields.get("max_samples")), sample_duration: Number(fields.get("sample_duration")) };
    const path = { partner: at.partner, voice: at.name };
    await ask(api.POST("/api/voices/{partner}/{voice}/split", { params: { path }, body, bodySerializer: multipart }));
    onClose();
    onDone();
  };
  return (
    <Dialog title="Split the recording again?" onClose={onClose}>
      <p>All samples and what was made of them are removed at once. The voice does not speak until it is embedded again.</p>
      <Form action="Split" busy="Splitting…" isDanger onSend={split} onCancel={onClose}>
        <div class="fields">
          <label>
            Samples at most
            <input type="number" name="max_samples" min={1} max={100} defaultValue="25" required />
          </label>
          <label>
            Length of a sample at most, in seconds
            <input type="number" name="sample_duration" min={5} max={60} defaultValue="15" required />
          </label>
        </div>
      </Form>
    </Dialog>
  );
}

export function EmbedVoice({ at, type, onDone, onClose }: ChangeProps & { type: string | null }) {
  const embed = async (fields: FormData) => {
    const chosen = String(fields.get("tts_type")).trim();
    const path = { partner: at.partner, voice: at.name };
    const body = chosen === "" ? {} : { tts_type: chosen };
    await ask(api.POST("/api/voices/{partner}/{voice}/embed", { params: { path }, body, bodySerializer: multipart }));
    onClose();
    onDone();
  };
  return (
    <Dialog title="Embed the samples" onClose={onClose}>
      <p>Computes the embedding that a synthesizer needs, and a score for each sample. An earlier embedding of the same type is removed at once.</p>
      <Form action="Embed" busy="Embedding…" onSend={embed} onCancel={onClose}>
        <label>
          Type
          <input
            name="tts_type"
            pattern="[A-Za-z0-9_\-]{1,64}"
            title="1 to 64 letters, digits, - and _"
            autocomplete="off"
            defaultValue={type ?? ""}
          />
          <span class="hint">What the voice is embedded for. Empty: the type that the server makes.</span>
        </label>
      </Form>
    </Dialog>
  );
}

export function DeleteSample({ at, index, onDone, onClose }: ChangeProps & { index: number }) {
  const remove = async () => {
    const path = { partner: at.partner, voice: at.name, index };
    await ask(api.DELETE("/api/voices/{partner}/{voice}/samples/{index}", { params: { path } }));
    onClose();
    notify(`Sample ${index} is deleted`);
    onDone();
  };
  return (
    <Dialog title={`Delete sample ${index}?`} onClose={onClose}>
      <p>Its score and its test sentences are deleted with it. This cannot be undone.</p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}
