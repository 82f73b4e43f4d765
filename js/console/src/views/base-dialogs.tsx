// Dialogs that create and delete knowledge bases.

import { BASE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { LIMIT_FIELDS } from "../knowledge/limit-fields";
import { formFields, multipart } from "../knowledge/forms";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { navigate } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { notify } from "../ui/toasts";

/** Creates a knowledge base and goes to it. */
export function NewBase({ partner, onClose }: { partner: string; onClose: () => void }) {
  const create = async (fields: FormData) => {
    const { name = "", ...others } = formFields(fields, "name", "expert_name", "user_email", ...LIMIT_FIELDS.map((field) => field.name));
    // The serializer writes numbers as the texts that they are here.
    const body = { name, ...others } as { name: string };
    const created = await ask(api.POST("/api/knowledgebases/{partner}", { params: { path: { partner } }, body, bodySerializer: multipart }));
    onClose();
    navigate(address(BASE, { partner, name: created.name }));
  };
  return (
    <Dialog title="Create a knowledge base" onClose={onClose}>
      <Form action="Create" busy="Creating…" onSend={create} onCancel={onClose}>
        <label>
          Name
          <input name="name" maxLength={200} required autocomplete="off" dir="auto" />
        </label>
        <label>
          Author or speaker, if all documents have the same one
          <input name="expert_name" maxLength={200} autocomplete="off" dir="auto" />
        </label>
        <label>
          E-mail of the person responsible
          <input name="user_email" type="email" maxLength={254} autocomplete="email" />
        </label>
        <fieldset>
          <legend>Budget</legend>
          <p class="hint">An empty field is no limit. The limits can be changed later.</p>
          <div class="limit-fields">
            {LIMIT_FIELDS.map(({ name, label, pattern, inputMode, rule }) => (
              <label key={name}>
                {label}
                <input name={name} pattern={pattern} inputMode={inputMode} title={rule} autocomplete="off" />
              </label>
            ))}
          </div>
        </fieldset>
      </Form>
    </Dialog>
  );
}

type DeleteProps = {
  partner: string;
  of: { name: string; documents: number; folders: number };
  onDeleted: () => void;
  onClose: () => void;
};

type Deletion = Schemas["DeletionView"];

/** Returns the outcome of a deletion, which may be pending. */
export function deletionWords(what: string, { status, pending }: Deletion): string {
  if (status !== "delete_pending") return `${what} is deleted`;
  return `${what} is being deleted. ${counted(pending?.active_documents ?? 0, "document")} in progress`;
}

export function DeleteBase({ partner, of: { name, documents, folders }, onDeleted, onClose }: DeleteProps) {
  const remove = async () => {
    const deletion = await ask(api.DELETE("/api/knowledgebases/{partner}/{kb}", { params: { path: { partner, kb: name } } }));
    onClose();
    notify(deletionWords(`The knowledge base ${name}`, deletion));
    onDeleted();
  };
  return (
    <Dialog title={`Delete the knowledge base ${name}?`} onClose={onClose}>
      <p>
        {counted(folders, "folder")} and {counted(documents, "document")} are deleted with it. This cannot be undone.
      </p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}
