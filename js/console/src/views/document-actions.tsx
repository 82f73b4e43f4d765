// Actions on one document or on several: retry, rewrite, move and delete.

import { useSignal } from "@preact/signals";

import { api } from "../api";
import { inBatches, oneByOne } from "../documents/bulk";
import { type Chosen, type RewriteEstimate, estimateOf } from "../documents/estimate";
import { type FilterQuery, filterQuery } from "../documents/filter";
import { startBulk } from "../documents/running";
import { reasonInWords } from "../documents/words";
import { filterOf } from "../knowledge/sorting";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatNumber, formatUsd } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { FolderFields, folderOf } from "./document-folders";

export type Subject = Chosen;
export type Action = {
  kind: "retry" | "rewrite" | "move" | "delete";
  on: Subject[];
  /** The filter of the list that the documents were chosen from. */
  within?: FilterQuery;
};
type At = { partner: string; base: string };
type DialogProps = At & Omit<Action, "kind"> & { onClose: () => void; onDone?: (() => void) | undefined };

const CONTENT_TYPES = { auto: "automatic", article: "article", video: "video", book: "book" } as const;
type ContentType = keyof typeof CONTENT_TYPES;

/** Names shown in a dialog at most. */
const MAX_NAMES = 5;

const isFailed = ({ state }: Subject) => state === "failed";
const subject = (on: readonly Subject[]) => (on.length === 1 && on[0] ? on[0].name : counted(on.length, "document"));

export function startRetry({ partner, base }: At, on: Subject[]): void {
  const params = { path: { partner, kb: base } };
  const change = inBatches((ids) => api.POST("/api/bulk/retry/{partner}/{kb}", { params, body: { document_ids: ids } }));
  startBulk({ doing: "Retrying", done: "queued again" }, on.filter(isFailed), change);
}

function Names({ of }: { of: Subject[] }) {
  return (
    <ul class="names">
      {of.slice(0, MAX_NAMES).map(({ id, name }) => (
        <li key={id}>
          <bdi>{name}</bdi>
        </li>
      ))}
      {of.length > MAX_NAMES && <li class="hint">and {formatNumber(of.length - MAX_NAMES)} more</li>}
    </ul>
  );
}

function Estimate({ of: { rewritable, skipped, inputTokens, outputTokens, cost, fitsBudget, shareOf } }: { of: RewriteEstimate }) {
  return (
    <>
      {rewritable.length > 0 && (
        <dl class="estimate">
          <dt>Documents</dt>
          <dd>{formatNumber(rewritable.length)}</dd>
          <dt>Tokens</dt>
          <dd>
            about {formatNumber(inputTokens)} in, {formatNumber(outputTokens)} out
          </dd>
          <dt>Cost</dt>
          <dd>{cost === null ? "not known: a model has no price" : `about ${formatUsd(cost.toPrecision(2))}`}</dd>
          {shareOf !== null && (
            <dd class="hint">
              A share, by length, of the estimate for {counted(shareOf, "document")}, those chosen among them.
            </dd>
          )}
        </dl>
      )}
      {fitsBudget === false && (
        <p class="notice">
          <Icon name="triangle-alert" /> The budget has no capacity for all of it now. What does not fit waits.
        </p>
      )}
      {skipped.length > 0 && (
        <ul class="names">
          {skipped.map(({ reason, documents }) => (
            <li key={reason}>
              {counted(documents, "document")} left out: <span class="hint">{reasonInWords(reason)}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Returns the filter that finds documents and as few others as possible. The API estimates no list of ids. */
function filterFor(on: readonly Subject[], within: FilterQuery): FilterQuery {
  const [first] = on;
  if (first && on.length === 1) return filterQuery({ q: filterOf(first.name) ?? "", states: [] }, first.folder);
  return first && on.every(({ folder }) => folder === first.folder) ? { ...within, folder: first.folder } : within;
}

function Rewrite({ partner, base, on, within = {}, onClose }: DialogProps) {
  const type = useSignal<ContentType>("auto");
  const filter = filterFor(on, within);
  const found = useResource(
    (call) => {
      const params = { path: { partner, kb: base }, query: { ...filter, skip_rewritten: false } };
      return ask(api.GET("/api/rewrite-estimate/{partner}/{kb}", { ...call, params }));
    },
    [partner, base, JSON.stringify(filter)],
  );
  const send = async (estimate: RewriteEstimate, fields: FormData) => {
    const person = String(fields.get("person_name") ?? "").trim();
    const query = { action: "rewrite" as const, partner, kb: base, content_type: type.peek(), ...(person !== "" && { person_name: person }) };
    const change = oneByOne((id) => api.POST("/api/queue/process", { params: { query }, body: { document: { id } } }));
    startBulk({ doing: "Rewriting", done: "queued for rewriting" }, estimate.rewritable, change);
    onClose();
  };
  return (
    <Dialog title={`Rewrite ${subject(on)}?`} onClose={onClose}>
      <p>A model writes new final content from the digitized text. The final content of today is replaced.</p>
      <Shown of={found}>
        {(found) => {
          const estimate = estimateOf(found, on);
          if (estimate.rewritable.length === 0) return <Estimate of={estimate} />;
          return (
            <Form action="Rewrite" busy="Starting…" onSend={(fields) => send(estimate, fields)} onCancel={onClose}>
              <Estimate of={estimate} />
              <div class="fields">
                <label>
                  Template
                  <select name="content_type" value={type.value} onChange={(event) => (type.value = event.currentTarget.value as ContentType)}>
                    {Object.entries(CONTENT_TYPES).map(([value, words]) => (
                      <option key={value} value={value}>
                        {words}
                      </option>
                    ))}
                  </select>
                </label>
                <label>
                  Person spoken of (optional)
                  <input name="person_name" maxLength={200} />
                </label>
              </div>
            </Form>
          );
        }}
      </Shown>
    </Dialog>
  );
}

function Move({ partner, base, on, onClose }: DialogProps) {
  const [first] = on;
  const current = first && on.every((one) => one.folder === first.folder) ? first.folder : null;
  const move = async (fields: FormData) => {
    const folder = await folderOf(partner, base, fields, null);
    const params = { path: { partner, kb: base } };
    const change = inBatches((ids) => api.POST("/api/bulk/move/{partner}/{kb}", { params, body: { document_ids: ids, folder } }));
    startBulk({ doing: "Moving", done: `moved to ${folder}` }, on.filter((one) => one.folder !== folder), change);
    onClose();
  };
  return (
    <Dialog title={`Move ${subject(on)}`} onClose={onClose}>
      <Form action="Move" busy="Moving…" onSend={move} onCancel={onClose}>
        <FolderFields partner={partner} base={base} initial={null} leftOut={current} />
      </Form>
    </Dialog>
  );
}

function Delete({ partner, base, on, onClose, onDone }: DialogProps) {
  const remove = async () => {
    const params = { path: { partner, kb: base } };
    const change = inBatches((ids) => api.POST("/api/bulk/delete/{partner}/{kb}", { params, body: { document_ids: ids } }));
    startBulk({ doing: "Deleting", done: "deleted" }, on, change);
    onDone?.();
    onClose();
  };
  return (
    <Dialog title={`Delete ${subject(on)}?`} onClose={onClose}>
      <p>Originals, texts and vectors are removed. Deleting cannot be undone, and what was spent is not refunded.</p>
      {on.length > 1 && <Names of={on} />}
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}

const DIALOGS = { rewrite: Rewrite, move: Move, delete: Delete };

type ActionDialogProps = At & { of: Action; onClose: () => void; onDone?: () => void };

/** The dialog of an action. `onDone` is called when a deletion has begun. */
export function ActionDialog({ partner, base, of: { kind, ...of }, onClose, onDone }: ActionDialogProps) {
  if (kind === "retry") return null;
  const Found = DIALOGS[kind];
  return <Found partner={partner} base={base} {...of} onClose={onClose} onDone={onDone} />;
}

/** Buttons for what is selected. */
export function SelectionBar({ on, onAct, onClear }: { on: Subject[]; onAct: (kind: Action["kind"]) => void; onClear: () => void }) {
  if (on.length === 0) return null;
  const failed = on.filter(isFailed).length;
  return (
    <div class="selection" role="toolbar" aria-label="Selected documents">
      <strong>{formatNumber(on.length)} selected</strong>
      {failed > 0 && (
        <button type="button" onClick={() => onAct("retry")}>
          <Icon name="refresh-cw" /> Retry {formatNumber(failed)} failed
        </button>
      )}
      <button type="button" onClick={() => onAct("rewrite")}>
        <Icon name="wand-sparkles" /> Rewrite…
      </button>
      <button type="button" onClick={() => onAct("move")}>
        <Icon name="folder-input" /> Move…
      </button>
      <button type="button" onClick={() => onAct("delete")}>
        <Icon name="trash-2" /> Delete…
      </button>
      <button type="button" class="bare" aria-label="Clear the selection" title="Clear the selection" onClick={onClear}>
        <Icon name="x" />
      </button>
    </div>
  );
}
