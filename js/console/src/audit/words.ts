// Changes in words, and where they lead.

import {
  ANALYSIS, BASE, CALL, CHARACTER, DELIVERY, DOCUMENT, KEYS, QUOTA, RETRIEVAL, TRANSCRIPT, VOICE, address,
} from "../addresses";
import type { Schemas } from "../api";
import { shortId } from "../calls/names";
import type { paths } from "../generated/api";

export type Action = NonNullable<NonNullable<paths["/api/audit"]["get"]["parameters"]["query"]>["action"]>;
export type Change = Schemas["AuditEntry"];
export type Resource = Change["resource"];

/** Words for operations, which the subject follows. */
export const ACTIONS: Record<Action, string> = {
  create_partner: "Created the partner",
  update_partner: "Changed the settings of the partner",
  delete_partner: "Deleted the partner",
  create_key: "Created the key",
  revoke_key: "Revoked the key",
  create_quota: "Created the quota",
  update_quota: "Changed the quota",
  rotate: "Gave another key to the quota",
  revoke: "Revoked the quota",
  sign_in: "Signed in to the console",
  sign_out: "Signed out of the console",
  sign_out_everywhere: "Signed out of the console everywhere",
  make_link: "Created a link to sign in",
  create_character: "Created the character",
  update_character: "Changed the character",
  delete_character: "Deleted the character",
  create_knowledge_base: "Created the knowledge base",
  delete_knowledge_base: "Deleted the knowledge base",
  change_limits: "Changed the budget of the knowledge base",
  decide: "Decided about unknown usage of the knowledge base",
  create_folder: "Created the folder",
  delete_folder: "Deleted the folder",
  change_channel: "Changed the channel of the folder",
  sync: "Scanned the channel of the folder",
  create_document: "Added the document",
  create_empty: "Created the empty document",
  create_urls: "Added addresses to the knowledge base",
  create_files: "Added files to the knowledge base",
  delete_document: "Deleted the document",
  write: "Edited a text of the document",
  upload: "Uploaded a text of the document",
  move_document: "Moved the document",
  rename: "Renamed the document",
  set_type: "Changed the type of the document",
  set_url: "Changed the address of the document",
  retry_document: "Retried the document",
  embed: "Embedded the document",
  retry: "Retried failed embeddings of the knowledge base",
  delete_documents: "Deleted documents of the knowledge base",
  move_documents: "Moved documents of the knowledge base",
  retry_documents: "Retried documents of the knowledge base",
  rewrite_base: "Rewrote documents of the knowledge base",
  rewrite_folder: "Rewrote documents of the folder",
  process: "Digitized or rewrote a document of the knowledge base",
  retry_failed_rewritings: "Retried all failed rewritings",
  backfill: "Sent all documents to the vector store from the knowledge base",
  retry_failed_vectorstore_sync: "Retried failed uploads to the vector store from the knowledge base",
  create_question: "Saved the question",
  change_question: "Changed the question",
  delete_question: "Deleted the question",
  begin_evaluation: "Ran the evaluation",
  delete_evaluation: "Deleted the evaluation",
  create_voice: "Created the voice",
  create_empty_voice: "Created the empty voice",
  delete_voice: "Deleted the voice",
  rename_voice: "Renamed the voice",
  split_voice: "Split the recording of the voice",
  embed_voice: "Embedded the voice",
  prefer_sample: "Chose the preferred sample of the voice",
  add_sample: "Added a sample to the voice",
  delete_sample: "Deleted a sample of the voice",
  delete_test_files: "Deleted test sentences of the voice",
  resend_delivery: "Sent the webhook delivery again",
  end_call: "Ended the call",
  delete_call: "Deleted the call",
  retry_transcript: "Retried the transcript",
  delete_transcript: "Deleted the transcript",
  retry_analysis: "Retried the dialog analysis",
};

/** Returns a change in words: its method and path if the operation is of another version of the server. */
export function actionWords({ action, method, path }: Pick<Change, "action" | "method" | "path">): string {
  return Object.hasOwn(ACTIONS, action) ? ACTIONS[action as Action] : `${method} ${path}`;
}

type Home = { scope: Schemas["Scope"]; pattern: string };

/** The views of resources, and the scopes that show them. */
const HOMES: Partial<Record<Resource, Home>> = {
  key: { scope: "keys", pattern: KEYS },
  quota: { scope: "keys", pattern: QUOTA },
  character: { scope: "characters", pattern: CHARACTER },
  base: { scope: "knowledge", pattern: BASE },
  folder: { scope: "knowledge", pattern: BASE },
  document: { scope: "knowledge", pattern: DOCUMENT },
  question: { scope: "knowledge", pattern: RETRIEVAL },
  evaluation: { scope: "knowledge", pattern: RETRIEVAL },
  voice: { scope: "voices", pattern: VOICE },
  delivery: { scope: "webhooks", pattern: DELIVERY },
  call: { scope: "calls", pattern: CALL },
  transcript: { scope: "transcripts", pattern: TRANSCRIPT },
  analysis: { scope: "analyses", pattern: ANALYSIS },
};

/** Returns the view of what was changed, or null: of what was deleted, and what has none. */
export function homeOf(change: Change): { scope: Schemas["Scope"]; to: string } | null {
  const { resource, subject, partner, action, parameters, method } = change;
  const home = HOMES[resource];
  const isGone = /^(delete|revoke)_/.test(action) && method === "DELETE" && resource !== "key";
  if (!home || !subject || !partner || (isGone && action !== "delete_sample")) return null;
  const base = parameters["kb"];
  const isWithinBase = ["folder", "document", "question", "evaluation"].includes(resource);
  if (isWithinBase && !base) return null;
  return { scope: home.scope, to: address(home.pattern, { partner, id: subject, name: isWithinBase && base ? base : subject }) };
}

const isId = (text: string) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text);

/** Returns the subject for people. Ids are shortened, as the views of the resources do. */
export const shortSubject = (subject: string) => (isId(subject) ? shortId(subject) : subject);

/** Returns who made a change. */
export function authorOf({ key_id: id, key_name: name, is_admin: isAdmin }: Change): string {
  if (name) return name;
  if (id === "configuration") return "configured key";
  if (id) return shortId(id);
  return isAdmin ? "an administrator" : "unknown";
}

export type Outcome = "done" | "failed" | "unknown";

export function outcomeOf({ status }: Pick<Change, "status">): Outcome {
  if (status === null || status === undefined) return "unknown";
  return status < 400 ? "done" : "failed";
}
