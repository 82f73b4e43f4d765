// The dialog that creates a key.

import { useSignal } from "@preact/signals";

import { api, may, sessions } from "../api";
import { nameOf } from "../calls/names";
import { SCOPES, SCOPE_NAMES, type Scope } from "../keys";
import { linesOf } from "../lines";
import { Problem, ask } from "../problem";
import { Dialog } from "../ui/dialog";
import { ExpiryField, readExpiry } from "../ui/expiry";
import { Form } from "../ui/form";
import { showOnce } from "../ui/once-shown";

type NewKeyProps = { partner: string; onCreated: () => void; onClose: () => void };

/** The scopes of a secret key. A key with scopes passes on its own only. */
function ScopesField() {
  const own = sessions.current.value?.scopes;
  const isLimited = useSignal(Boolean(own));
  return (
    <>
      {!own && (
        <label>
          Allowed for
          <select name="allowed" value={isLimited.value ? "some" : "all"} onChange={(event) => (isLimited.value = event.currentTarget.value === "some")}>
            <option value="all">everything</option>
            <option value="some">what is chosen</option>
          </select>
        </label>
      )}
      <fieldset class="choices" hidden={!isLimited.value}>
        <legend>{own ? "Allowed for" : "Chosen"}</legend>
        {SCOPES.filter((scope) => !own || own.includes(scope)).map((scope) => (
          <label key={scope} class="inline">
            <input type="checkbox" name="scopes" value={scope} />
            {SCOPE_NAMES[scope]}
          </label>
        ))}
      </fieldset>
    </>
  );
}

/** Returns the scopes of a form; null for everything. */
function readScopes(fields: FormData): Scope[] | null {
  if (fields.get("allowed") === "all") return null;
  const scopes = SCOPES.filter((scope) => fields.getAll("scopes").includes(scope));
  if (scopes.length === 0) throw new Problem(400, "no_scope", "Choose what the key is allowed for.", "scopes");
  return scopes;
}

export function NewKey({ partner, onCreated, onClose }: NewKeyProps) {
  const kind = useSignal<"secret" | "publishable">("secret");
  const isPublishable = kind.value === "publishable";
  const create = async (fields: FormData) => {
    const origins = linesOf(String(fields.get("allowed_origins") ?? ""));
    const allowed = isPublishable ? { allowed_origins: origins } : { scopes: readScopes(fields) };
    const body = { name: String(fields.get("name")), kind: kind.peek(), ...allowed, ...readExpiry(fields) };
    const created = await ask(api.POST("/api/keys/{partner}", { params: { path: { partner } }, body }));
    onClose();
    showOnce(`The key ${nameOf(created)}`, created.api_key);
    onCreated();
  };
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <Form action="Create the key" busy="Creating…" onSend={create} onCancel={onClose}>
        <label>
          Name
          <input name="name" maxLength={100} required />
        </label>
        <label>
          Kind
          <select name="kind" value={kind.value} onChange={(event) => (kind.value = event.currentTarget.value as typeof kind.value)}>
            <option value="secret">Secret, for servers</option>
            {may("calls") && <option value="publishable">Publishable, for web pages: makes calls only</option>}
          </select>
        </label>
        {/* Both stay, so that neither is lost when the kind is changed and changed back. */}
        <label hidden={!isPublishable}>
          Origins of the web pages, one a line
          <textarea name="allowed_origins" rows={3} required={isPublishable} placeholder="https://www.example.com" />
        </label>
        <div hidden={isPublishable}>
          <ScopesField />
        </div>
        <ExpiryField />
      </Form>
    </Dialog>
  );
}
