// Dialogs that create and delete folders.

import { useSignal } from "@preact/signals";

import { type Schemas, api } from "../api";
import { formFields, multipart } from "../knowledge/forms";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { navigate, setQuery } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { notify } from "../ui/toasts";
import { deletionWords } from "./base-dialogs";

type Kind = "regular" | "video_channel";
type Tier = Schemas["ModelTier"];
type NewProps = { partner: string; base: string; addressOf: (name: string) => string; onClose: () => void };

/** Choices of the models that work on the videos of a channel. */
export function TierOptions() {
  return (
    <>
      <option value="standard">standard</option>
      <option value="economy">economy, cheaper</option>
    </>
  );
}

/** Creates a folder and selects it. */
export function NewFolder({ partner, base, addressOf, onClose }: NewProps) {
  const kind = useSignal<Kind>("regular");
  const create = async (fields: FormData) => {
    const { name = "", channel_url = null, model_tier = null } = formFields(fields, "name", "channel_url", "model_tier");
    // The fields of a channel exist for channels only.
    const body = { name, type: kind.peek(), channel_url, model_tier: model_tier as Tier | null };
    const params = { path: { partner, kb: base } };
    const created = await ask(api.POST("/api/folders/{partner}/{kb}", { params, body, bodySerializer: multipart }));
    onClose();
    navigate(addressOf(created.name), { replace: true });
  };
  return (
    <Dialog title="Create a folder" onClose={onClose}>
      <Form action="Create" busy="Creating…" onSend={create} onCancel={onClose}>
        <label>
          Name
          <input name="name" maxLength={200} required autocomplete="off" dir="auto" />
        </label>
        <label>
          Documents
          <select name="type" value={kind.value} onChange={(event) => (kind.value = event.currentTarget.value as Kind)}>
            <option value="regular">are added by hand</option>
            <option value="video_channel">are the videos of a channel</option>
          </select>
        </label>
        {kind.value === "video_channel" && (
          <>
            <label>
              Channel
              <input name="channel_url" required autocomplete="off" placeholder="@name" />
              <span class="hint">A handle, or the address of a channel. It cannot be changed later.</span>
            </label>
            <label>
              Models for the videos
              <select name="model_tier">
                <TierOptions />
              </select>
            </label>
            <p class="hint">New videos are looked for at once and every 24 hours. Looking for them is charged to the budget.</p>
          </>
        )}
      </Form>
    </Dialog>
  );
}

type DeleteProps = {
  partner: string;
  base: string;
  of: { name: string; type: string; documents: number };
  onClose: () => void;
};

export function DeleteFolder({ partner, base, of: { name, type, documents }, onClose }: DeleteProps) {
  const remove = async () => {
    const path = { partner, kb: base, folder: name };
    const deletion = await ask(api.DELETE("/api/folders/{partner}/{kb}/{folder}", { params: { path } }));
    onClose();
    notify(deletionWords(`The folder ${name}`, deletion));
    setQuery({ folder: null });
  };
  return (
    <Dialog title={`Delete the folder ${name}?`} onClose={onClose}>
      <p>
        {documents === 0 ? "It has no documents." : `${counted(documents, "document")} ${documents === 1 ? "is" : "are"} deleted with it.`}{" "}
        {type === "video_channel" && "Its channel is not followed any more. "}
        This cannot be undone.
      </p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}
