// One document: its state and figures, what can be done with it, and its contents.

import { useSignal } from "@preact/signals";

import { BASE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { useIsOpen } from "../documents/closed";
import { URLENCODED } from "../documents/contents";
import { listParameters } from "../documents/filter";
import { ask } from "../problem";
import { navigate, query } from "../router";
import { Back } from "../ui/back";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { useHeading } from "../ui/heading";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { notify } from "../ui/toasts";
import { type Action, ActionDialog, type Subject, startRetry } from "./document-actions";
import { BulkProgress } from "./document-bulk";
import { Contents } from "./document-contents";
import { Facts } from "./document-facts";
import { DocumentState, Reasons } from "./document-state";

type DocumentView = Schemas["DocumentView"];
type Props = { partner: string; name: string; id: string };
type Chosen = Exclude<Action["kind"], "retry"> | "rename";

function Rename({ partner, base, of, onClose }: { partner: string; base: string; of: DocumentView; onClose: () => void }) {
  const rename = async (fields: FormData) => {
    const name = String(fields.get("name")).trim();
    const params = { path: { partner, kb: base, doc_id: of.id } };
    await ask(api.PUT("/api/documents/{partner}/{kb}/{doc_id}/name", { headers: URLENCODED, params, body: { name } }));
    onClose();
    notify("Renamed");
  };
  return (
    <Dialog title="Rename the document" onClose={onClose}>
      <Form action="Rename" busy="Renaming…" onSend={rename} onCancel={onClose}>
        <label>
          Name
          <input name="name" maxLength={200} required defaultValue={of.name} dir="auto" />
        </label>
        <p class="hint">The name is searched with the text, so the document is embedded again.</p>
      </Form>
    </Dialog>
  );
}

function Actions({ partner, base, of }: { partner: string; base: string; of: DocumentView }) {
  const chosen = useSignal<Chosen | null>(null);
  const close = () => (chosen.value = null);
  const on: Subject[] = [{ id: of.id, name: of.name, folder: of.folder, state: of.status, text_characters: of.digitized_chars ?? null }];
  const choose = (kind: Chosen) => () => (chosen.value = kind);
  const leave = () => navigate(address(BASE, { partner, name: base }, listParameters(query.peek())));
  return (
    <>
      <div class="actions">
        {of.status === "failed" && (
          <button type="button" class="primary" onClick={() => startRetry({ partner, base }, on)}>
            <Icon name="refresh-cw" /> Retry
          </button>
        )}
        <button type="button" onClick={choose("rewrite")}>
          <Icon name="wand-sparkles" /> Rewrite…
        </button>
        <button type="button" onClick={choose("rename")}>
          <Icon name="pencil" /> Rename…
        </button>
        <button type="button" onClick={choose("move")}>
          <Icon name="folder-input" /> Move…
        </button>
        <button type="button" onClick={choose("delete")}>
          <Icon name="trash-2" /> Delete…
        </button>
      </div>
      {chosen.value === "rename" && <Rename partner={partner} base={base} of={of} onClose={close} />}
      {chosen.value && chosen.value !== "rename" && (
        <ActionDialog partner={partner} base={base} of={{ kind: chosen.value, on }} onClose={close} onDone={leave} />
      )}
    </>
  );
}

export function Document({ partner, name: base, id }: Props) {
  const document = useResource(
    (call) => ask(api.GET("/api/document/{partner}/{kb}/{doc_id}", { ...call, params: { path: { partner, kb: base, doc_id: id } } })),
    [partner, base, id],
    { partner, kinds: ["document"], base, id },
  );
  const isOpen = useIsOpen(partner, base);
  useHeading(document.data.value?.name);
  return (
    <div class="document">
      <Back to={address(BASE, { partner, name: base }, listParameters(query.value))}>{`Documents of ${base}`}</Back>
      <Shown of={document}>
        {(of) => (
          <>
            <div class="status">
              <DocumentState state={of.status} of={of} />
              {isOpen({ folder: of.folder, state: of.status }) && <Actions partner={partner} base={base} of={of} />}
            </div>
            <Reasons reason={of.processing_error} warning={of.processing_warning} />
            <BulkProgress />
            <Facts partner={partner} base={base} of={of} />
            <Contents at={{ partner, base, id }} of={of} />
          </>
        )}
      </Shown>
    </div>
  );
}
