// The dialogs that create, edit, rotate and revoke a quota.

import { type Schemas, api } from "../api";
import { nameOf } from "../calls/names";
import { LIMIT_PATTERNS } from "../knowledge/budget";
import { ask } from "../problem";
import {
  KINDS, KIND_NAMES, LIMITED, LIMIT_NAMES, type Limited, PERIODS, PERIOD_NAMES, type Quota, changesOf, readForm,
} from "../quotas/quota";
import { Dialog } from "../ui/dialog";
import { ExpiryField, readExpiry } from "../ui/expiry";
import { Form } from "../ui/form";
import { showOnce } from "../ui/once-shown";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";

type WithKey = Schemas["QuotaWithKey"];

function LimitField({ measure, of }: { measure: Limited; of: Quota | undefined }) {
  const isMoney = measure === "dollars";
  return (
    <label>
      {LIMIT_NAMES[measure]}
      <input
        name={`limits.${measure}`}
        defaultValue={String(of?.limits[measure] ?? "")}
        pattern={isMoney ? LIMIT_PATTERNS.dollar_limit_usd : LIMIT_PATTERNS.token_limit}
        inputMode={isMoney ? "decimal" : "numeric"}
        title={isMoney ? "Dollars with at most 8 decimals after a point" : "A whole number of at most 15 digits"}
        placeholder="no limit"
        autocomplete="off"
      />
    </label>
  );
}

function Fields({ partner, of }: { partner: string; of?: Quota }) {
  return (
    <>
      <label>
        Name
        <input name="name" maxLength={100} required autocomplete="off" dir="auto" defaultValue={of?.name ?? ""} />
      </label>
      <fieldset class="choices">
        <legend>For</legend>
        {KINDS.map((kind) => (
          <label key={kind} class="inline">
            <input type="checkbox" name="kinds" value={kind} defaultChecked={of?.kinds.includes(kind) ?? kind === "text"} />
            {KIND_NAMES[kind]}
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Limits</legend>
        <p class="hint">An empty field is no limit. 0 lets nothing more begin. What was used counts on when the period changes.</p>
        <div class="limit-fields even">
          <label>
            Period
            <select name="period">
              {PERIODS.map((period) => (
                <option key={period} value={period} selected={period === (of?.period ?? "month")}>
                  {PERIOD_NAMES[period]}
                </option>
              ))}
            </select>
          </label>
          {LIMITED.map((measure) => (
            <LimitField key={measure} measure={measure} of={of} />
          ))}
        </div>
      </fieldset>
      <label>
        Models, one a line. None for all
        <textarea name="allowed_models" rows={2} dir="auto" spellcheck={false} defaultValue={of?.allowed_models?.join("\n") ?? ""} />
      </label>
      <label>
        Characters, one a line. None for all
        <textarea name="allowed_characters" rows={2} dir="auto" spellcheck={false} defaultValue={of?.allowed_characters?.join("\n") ?? ""} />
        <span class="hint">
          <code>repo:{partner}/*</code> for all saved ones, <code>repo:{partner}/name</code> for one, <code>inline</code> for those that a request brings along
        </span>
      </label>
    </>
  );
}

function showKey(quota: WithKey): void {
  showOnce(`The key of the quota ${nameOf(quota)}`, quota.api_key);
}

type NewProps = { partner: string; onCreated: () => void; onClose: () => void };

export function NewQuota({ partner, onCreated, onClose }: NewProps) {
  const create = async (fields: FormData) => {
    const body = { ...readForm(fields), ...readExpiry(fields) };
    const created = await ask(api.POST("/api/quotas/{partner}", { params: { path: { partner } }, body }));
    onClose();
    showKey(created);
    onCreated();
  };
  return (
    <Dialog title="Create a quota" onClose={onClose}>
      <Form action="Create the quota" busy="Creating…" onSend={create} onCancel={onClose}>
        <Fields partner={partner} />
        <ExpiryField />
      </Form>
    </Dialog>
  );
}

type ChangeProps = { partner: string; of: Quota; onChanged: () => void; onClose: () => void };

export function EditQuota({ partner, of, onChanged, onClose }: ChangeProps) {
  const change = async (fields: FormData) => {
    const body = { ...changesOf(of, { ...readForm(fields), disabled: fields.has("disabled") }), ...readExpiry(fields) };
    if (Object.keys(body).length > 0) {
      await ask(api.PUT("/api/quotas/{partner}/{quota_id}", { params: { path: { partner, quota_id: of.id } }, body }));
      notify("The quota is changed");
      onChanged();
    }
    onClose();
  };
  return (
    <Dialog title={`Edit the quota ${nameOf(of)}`} onClose={onClose}>
      <Form action="Save" busy="Saving…" onSend={change} onCancel={onClose}>
        <Fields partner={partner} of={of} />
        <ExpiryField present={of.expires_at ?? null} />
        <label class="inline">
          <input type="checkbox" name="disabled" defaultChecked={of.disabled} />
          Switched off: requests with its key are refused
        </label>
      </Form>
    </Dialog>
  );
}

export function RotateQuota({ partner, of, onChanged, onClose }: ChangeProps) {
  const rotate = async () => {
    const rotated = await ask(api.POST("/api/quotas/{partner}/{quota_id}/rotate", { params: { path: { partner, quota_id: of.id } } }));
    onClose();
    showKey(rotated);
    onChanged();
  };
  return (
    <Dialog title={`Replace the key of the quota ${nameOf(of)}?`} onClose={onClose}>
      <p>
        The quota gets another key, and its present key ends at once. Limits and usage stay. The key was used <Time at={of.last_used_at} /> last.
      </p>
      <Form action="Replace the key" busy="Replacing…" isDanger onSend={rotate} onCancel={onClose} />
    </Dialog>
  );
}

export function RevokeQuota({ partner, of, onChanged, onClose }: ChangeProps) {
  const revoke = async () => {
    await ask(api.DELETE("/api/quotas/{partner}/{quota_id}", { params: { path: { partner, quota_id: of.id } } }));
    onClose();
    notify(`The quota ${nameOf(of)} is revoked`);
    onChanged();
  };
  return (
    <Dialog title={`Revoke the quota ${nameOf(of)}?`} onClose={onClose}>
      <p>
        Requests with its key are refused from now on. Its usage stays. Revoking cannot be undone. The key was used <Time at={of.last_used_at} /> last.
      </p>
      <Form action="Revoke" busy="Revoking…" isDanger onSend={revoke} onCancel={onClose} />
    </Dialog>
  );
}
