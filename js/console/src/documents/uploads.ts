// The uploads of this tab. They go on while the user visits other views, and end with the session.

import { computed, effect } from "@preact/signals";

import { type Schemas, api, sessions } from "../api";
import { systemClock } from "../clock";
import { filterOf } from "../knowledge/sorting";
import { counted } from "../knowledge/words";
import { ask, problemOf, received, toProblem } from "../problem";
import { notify, notifyFailure } from "../ui/toasts";
import { mayBeLost } from "../unfinished";
import { sha256 } from "./digest";
import { type Outcome, UploadQueue } from "./queue";
import { Busy, transfer } from "./transfer";
import { Unanswered } from "./unanswered";

/** The step that follows once a document is digitized. */
export type Processing = "as-is" | "rewrite" | "none";

/** The folder that documents go to, and how they are processed. */
export type Destination = {
  partner: string;
  base: string;
  folder: string;
  processing: Processing;
  tier: Schemas["ModelTier"];
};

/** A document to create, of a file or of an address. `name` is empty where the server derives it. */
export type Source = Destination & { name: string; size: number | null } & ({ file: File } | { url: string });

function form(source: Source): FormData {
  const { folder, processing, tier, name } = source;
  const fields = new FormData();
  fields.append("type", "file" in source ? "file" : "url");
  fields.append("folder", folder);
  if (name !== "") fields.append("name", name);
  if (processing === "as-is") fields.append("use_original_as_rewritten", "true");
  if (processing === "rewrite") {
    fields.append("auto_rewrite", "true");
    fields.append("model_tier", tier);
  }
  if ("file" in source) fields.append("file", source.file, source.file.name);
  else fields.append("url", source.url);
  return fields;
}

/** Lists the documents that may be of an upload: those of its folder that changed last, and have its name if that is known. */
async function listLike({ partner, base, folder, name }: Source, signal: AbortSignal) {
  const q = filterOf(name);
  const params = { path: { partner, kb: base }, query: { sort: "changed" as const, folder, ...(q !== null && { q }) } };
  const { data, error, response } = await received(api.GET("/api/document-list/{partner}/{kb}", { signal, params }));
  if (!response.ok) throw problemOf({ error, response });
  return { documents: data?.documents ?? [], now: Date.parse(response.headers.get("date") ?? "") };
}

const unanswered = new Unanswered<Source>({
  list: listLike,
  read: ({ partner, base }, id, signal) =>
    ask(api.GET("/api/document/{partner}/{kb}/{doc_id}", { signal, params: { path: { partner, kb: base, doc_id: id } } })),
  digest: sha256,
  clock: systemClock,
});

/** Statuses of a server that restarts or has no capacity; 0 if it cannot be reached. */
const LATER = [0, 429, 502, 503, 504];

async function send(source: Source, onProgress: (share: number) => void, signal: AbortSignal): Promise<Outcome> {
  const path = `/api/documents/${encodeURIComponent(source.partner)}/${encodeURIComponent(source.base)}`;
  const signIn = sessions.signInCount.peek();
  const began = systemClock.now();
  try {
    const found = await unanswered.find(source, signal);
    if (found) return { kind: "created", ...found };
    const body = await transfer({ method: "POST", path, body: form(source), onProgress, signal });
    const made = JSON.parse(await body.text()) as Schemas["DocumentView"];
    unanswered.take(made.id);
    return { kind: "created", document: made.id, duplicates: made.duplicate_document_ids };
  } catch (error) {
    const problem = toProblem(error);
    // The server may have accepted it.
    if (!(error instanceof Busy) && (problem.status === 0 || problem.status >= 500)) unanswered.lose(source, began);
    const isOfEarlierSession = signIn !== sessions.signInCount.peek();
    if (problem.status === 401) return isOfEarlierSession ? { kind: "busy", waitMs: 0, problem } : { kind: "signed-out" };
    if (error instanceof Busy) return { kind: "busy", waitMs: error.waitMs, problem };
    if (LATER.includes(problem.status)) return { kind: "busy", waitMs: null, problem };
    return { kind: "failed", problem };
  }
}

export const uploads = new UploadQueue<Source>({ send, clock: systemClock });

/** Name of an upload for people. */
export const nameOf = (source: Source) => source.name || ("file" in source ? source.file.name : source.url);

mayBeLost(
  computed(() => {
    const { queued, sending, waiting } = uploads.counts.value;
    const left = queued + sending + waiting;
    return left > 0 ? counted(left, "upload") : null;
  }),
);

let wasActive = false;
effect(() => {
  const isActive = uploads.isActive.value;
  if (wasActive && !isActive && uploads.uploads.peek().length > 0) {
    const { done, failed } = uploads.counts.peek();
    if (failed > 0) notifyFailure(`${counted(failed, "upload")} of ${(done + failed).toLocaleString()} failed`);
    else if (done > 0) notify(`${counted(done, "document")} uploaded`);
  }
  wasActive = isActive;
});

effect(() => {
  if (!sessions.current.value) uploads.clear();
});

let count = sessions.signInCount.peek();
sessions.signInCount.subscribe((now) => {
  if (now !== count && sessions.current.peek()) uploads.resume();
  count = now;
});
