// The dialogs that create, edit and delete a partner.

import { type Schemas, api } from "../api";
import { type Settings, changesOf, readSettings } from "../partners";
import { ask } from "../problem";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatBytes } from "../ui/format";
import { showOnce } from "../ui/once-shown";
import { notify } from "../ui/toasts";

type Partner = Schemas["PartnerView"];

const WHOLE = "A whole number";

type SwitchProps = { name: string; label: string; otherwise: string; value: boolean | null | undefined };

function Switch({ name, label, otherwise, value }: SwitchProps) {
  const chosen = value === null || value === undefined ? "" : value ? "on" : "off";
  return (
    <label>
      {label}
      <select name={`settings.${name}`}>
        {[
          ["", `as for everybody: ${otherwise}`],
          ["on", "on"],
          ["off", "off"],
        ].map(([value, text]) => (
          <option key={value} value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

type NumberProps = { name: string; label: string; max: number; min?: number; value: number | null | undefined };

function WholeNumber({ name, label, max, min = 1, value }: NumberProps) {
  return (
    <label>
      {label}
      <input
        name={`settings.${name}`}
        type="number"
        inputMode="numeric"
        min={min}
        max={max}
        step={1}
        title={WHOLE}
        placeholder="as for everybody"
        autocomplete="off"
        defaultValue={String(value ?? "")}
      />
    </label>
  );
}

function Fields({ of }: { of?: Partner }) {
  const settings: Partial<Settings> = of?.settings ?? {};
  return (
    <>
      <label>
        Name
        <input name="display_name" maxLength={200} autocomplete="off" dir="auto" required={of !== undefined} defaultValue={of?.display_name ?? ""} />
      </label>
      <fieldset>
        <legend>Switches and limits</legend>
        <div class="limit-fields wide even">
          <Switch name="transcription_enabled" label="Transcribe the sound of documents" otherwise="on" value={settings.transcription_enabled} />
          <Switch name="vectorstore_sync_enabled" label="Keep a vector store in step" otherwise="off" value={settings.vectorstore_sync_enabled} />
          <WholeNumber
            name="vectorstore_sync_requests_per_minute"
            label="Requests to the vector store a minute"
            max={6_000}
            value={settings.vectorstore_sync_requests_per_minute}
          />
          <WholeNumber name="requests_per_minute" label="Requests of all keys a minute" max={1_000_000} value={settings.requests_per_minute} />
          <WholeNumber name="storage_bytes" label="Storage in bytes" min={0} max={Number.MAX_SAFE_INTEGER} value={settings.storage_bytes} />
        </div>
        <label>
          Models that quotas may use, one a line. None for all
          <textarea name="settings.allowed_models" rows={2} dir="auto" spellcheck={false} defaultValue={settings.allowed_models?.join("\n") ?? ""} />
        </label>
      </fieldset>
    </>
  );
}

type NewProps = { onCreated: () => void; onClose: () => void };

export function NewPartner({ onCreated, onClose }: NewProps) {
  const create = async (fields: FormData) => {
    const partner = String(fields.get("partner")).trim();
    const name = String(fields.get("display_name")).trim();
    const body = { ...(name && { display_name: name }), settings: readSettings(fields) };
    const created = await ask(api.POST("/api/partners/{partner}", { params: { path: { partner } }, body }));
    onClose();
    showOnce(`The first key of ${created.id}`, created.api_key);
    onCreated();
  };
  return (
    <Dialog title="Create a partner" onClose={onClose}>
      <Form action="Create the partner" busy="Creating…" onSend={create} onCancel={onClose}>
        <label>
          Identifier, which addresses and keys name. It cannot be changed
          <input
            name="partner"
            required
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            pattern="[a-z0-9][a-z0-9_\-]{0,63}"
            title="1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit"
          />
        </label>
        <Fields />
      </Form>
    </Dialog>
  );
}

type ChangeProps = { of: Partner; onChanged: () => void; onClose: () => void };

export function EditPartner({ of, onChanged, onClose }: ChangeProps) {
  const change = async (fields: FormData) => {
    const params = { path: { partner: of.id } };
    const changed = changesOf(of.settings, readSettings(fields));
    const now = await ask(api.GET("/api/partners/{partner}", { params }));
    const body = { display_name: String(fields.get("display_name")).trim(), settings: { ...now.settings, ...changed } };
    await ask(api.PUT("/api/partners/{partner}", { params, body }));
    onClose();
    notify(`The partner ${of.id} is changed`);
    onChanged();
  };
  return (
    <Dialog title={`Edit the partner ${of.id}`} onClose={onClose}>
      <Form action="Save" busy="Saving…" onSend={change} onCancel={onClose}>
        <Fields of={of} />
      </Form>
    </Dialog>
  );
}

export function DeletePartner({ of, onChanged, onClose }: ChangeProps) {
  const remove = async () => {
    await ask(api.DELETE("/api/partners/{partner}", { params: { path: { partner: of.id } } }));
    onClose();
    notify(`The partner ${of.id} is deleted`);
    onChanged();
  };
  return (
    <Dialog title={`Delete the partner ${of.id}?`} onClose={onClose}>
      <p>
        Everything of {of.display_name} goes with it: {formatBytes(of.storage.used_bytes)} of documents, texts and voices, and its characters, calls with their
        transcripts, webhook deliveries, quotas with their usage, and keys, which end at once. This cannot be undone.
      </p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose}>
        <label>
          Enter <code>{of.id}</code> to delete it
          <input name="confirmation" required autocomplete="off" autocapitalize="none" spellcheck={false} pattern={of.id} title={of.id} />
        </label>
      </Form>
    </Dialog>
  );
}
