// Words for the codes of the system.

import { type Schemas } from "../api";

type Waiting = Schemas["WaitingWorkView"];

export const NODE_STATES: Record<string, string> = {
  running: "running",
  stopping: "stopping",
  stopped: "stopped",
  lost: "presumed lost",
  replaced: "replaced",
};

/** Explanations of the states that need one. */
export const NODE_NOTES: Record<string, string> = {
  stopping: "The node was told to stop and finishes what it has.",
  stopped: "The node was told to stop and is silent.",
  lost: "The node has been silent for 30 seconds or more. Other nodes end its calls and take over its jobs.",
  replaced: "Another process has taken over the data folder of the node.",
};

/** Names of kinds of jobs. */
export const JOBS: Record<string, string> = {
  "analyses.analyze": "Analyze dialogs",
  "bases.digitize": "Digitize documents",
  "bases.discover": "Scan channels",
  "bases.embed": "Embed documents",
  "bases.embed_long": "Embed long documents",
  "bases.erase": "Delete documents",
  "bases.evaluate": "Evaluate retrieval",
  "bases.import": "Import videos of channels",
  "bases.reembed": "Embed bases with another model",
  "bases.rewrite": "Rewrite documents",
  "bases.vectorstore": "Sync vector stores",
  "bases.wake": "Wake documents that waited",
  "messaging.complete": "Answer messages",
  "transcripts.transcribe": "Transcribe recordings",
  "voices.embed": "Embed voices",
  "voices.split": "Split recordings of voices",
  "webhook.deliver": "Deliver webhooks",
};

export const WAITING: Record<Waiting["kind"], string> = {
  documents: "document",
  channels: "channel",
  webhooks: "delivery",
  vectorstore_files: "file for a vector store",
};

export const REASONS: Record<Waiting["reason"], string> = {
  budget: "The budget of the base has no room.",
  receiver: "The receiver failed. Another attempt follows.",
  service: "The vector store cannot be used now.",
  failed: "All attempts failed within the last day. Send them again once the receiver works.",
};

export const PURPOSES: Record<Schemas["ModelPurpose"], string> = {
  text: "Text",
  transcription: "Ears",
  speech: "Voice",
  embedding: "Embedding",
  voices: "Voice library",
  vectorstore: "Vector store",
};

export const PROVIDERS: Record<string, string> = {
  service: "service",
  embedded: "part of the server",
  program: "program of the machine",
};

export const UNITS: Record<Schemas["PriceUnit"], string> = {
  million_input_tokens: "per 1M input tokens",
  million_cached_input_tokens: "per 1M cached input tokens",
  million_output_tokens: "per 1M output tokens",
  million_reasoning_tokens: "per 1M reasoning tokens",
  million_characters: "per 1M characters",
  hour: "per hour",
};

export const REACH: Record<string, string> = { unused: "not asked yet", answering: "answers", failing: "fails", resting: "rests after failures" };

/** Kinds of failures of models. */
export const FAILURES: Record<string, string> = {
  connect: "no connection",
  timeout: "no answer in time",
  rate_limited: "too many requests",
  rejected: "request refused",
  misconfigured: "key not accepted, or program missing",
  failed: "error of the service",
  malformed: "answer not understood",
  empty: "empty answer",
  cut: "answer broke off",
};

/** The class of a state. */
export const TONES: Record<string, string> = {
  running: "ok",
  answering: "ok",
  present: "ok",
  lost: "down",
  failing: "down",
  resting: "down",
  missing: "down",
  unused: "plain",
  stopped: "plain",
  replaced: "plain",
  advice: "plain",
};
