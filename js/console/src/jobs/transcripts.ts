// Transcripts: their states, and the form that creates one.

import type { Schemas } from "../api";
import { linesOf } from "../lines";
import { Problem } from "../problem";
import { formatNumber } from "../ui/format";

export type Transcript = Schemas["Transcript"];
export type Status = Schemas["TranscriptStatus"];

export const STATUSES = ["queued", "processing", "completed", "error"] as const satisfies readonly Status[];
export const STATUS_NAMES: Record<Status, string> = { queued: "queued", processing: "in progress", completed: "completed", error: "failed" };
export const STATUS_CLASSES: Record<Status, string> = { queued: "", processing: "busy", completed: "ok", error: "down" };

/** Languages of recordings, as the API names them. */
export const LANGUAGES: [Schemas["LanguageCode"], string][] = [
  ["en_us", "English (United States)"],
  ["en_uk", "English (United Kingdom)"],
  ["en_au", "English (Australia)"],
  ["en", "English"],
  ["ca", "Catalan"],
  ["nl", "Dutch"],
  ["fr", "French"],
  ["de", "German"],
  ["id", "Indonesian"],
  ["it", "Italian"],
  ["ja", "Japanese"],
  ["pl", "Polish"],
  ["pt", "Portuguese"],
  ["ru", "Russian"],
  ["es", "Spanish"],
  ["tr", "Turkish"],
  ["uk", "Ukrainian"],
];
/** The choice that has the language detected. */
export const DETECT = "auto";

/** Terms that may be boosted. */
const MAX_TERMS = 100;

/** Returns the terms of a text, one a line. Throws a {@link Problem} if there are more than the API takes. */
export function termsOf(text: string): string[] {
  const terms = linesOf(text);
  if (terms.length <= MAX_TERMS) return terms;
  throw new Problem(400, "invalid", `There are ${formatNumber(terms.length)} expected terms, and ${MAX_TERMS} at most are allowed.`, "boosted_words");
}

/** Options of a transcript, as the API takes them. */
export type Options = {
  /** Counts for nothing if the language is detected. */
  language_code: Schemas["LanguageCode"];
  language_auto: boolean;
  filler_words: boolean;
  format_text: boolean;
  boosted_words: string[];
};

/** Returns the options of a form. */
export function optionsOf(fields: FormData): Options {
  const language = String(fields.get("language_code"));
  return {
    language_code: LANGUAGES.find(([code]) => code === language)?.[0] ?? "en_us",
    language_auto: language === DETECT,
    filler_words: fields.has("filler_words"),
    format_text: fields.has("format_text"),
    boosted_words: termsOf(String(fields.get("boosted_words") ?? "")),
  };
}

/** Returns a recording with its options as a form of the API. */
export function recordingForm(file: File, { boosted_words, ...options }: Options): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(options)) form.append(name, String(value));
  for (const term of boosted_words) form.append("boosted_words[]", term);
  form.append("audio", file, file.name);
  return form;
}
