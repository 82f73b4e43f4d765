// Settings of partners: as a form sets them, and how they differ from those of everybody.

import type { Schemas } from "./api";
import { counted } from "./knowledge/words";
import { linesOf } from "./lines";
import { formatBytes, formatNumber } from "./ui/format";

export type Settings = Schemas["PartnerSettings"];

/** Returns the settings that differ from those of everybody, in words. */
export function differencesOf(settings: Settings): string[] {
  const { transcription_enabled: transcription, vectorstore_sync_enabled: sync, vectorstore_sync_requests_per_minute: syncRate } = settings;
  const { requests_per_minute: rate, storage_bytes: storage, allowed_models: models } = settings;
  const words = [
    transcription === false && "no transcription",
    sync === true && "vector store",
    typeof syncRate === "number" && `${counted(syncRate, "request")} a minute to the vector store`,
    typeof rate === "number" && `${counted(rate, "request")} a minute`,
    typeof storage === "number" && `storage of ${formatBytes(storage)}`,
    models && `${formatNumber(models.length)} allowed ${models.length === 1 ? "model" : "models"}`,
  ];
  return words.filter((word) => typeof word === "string");
}

/** Reads the settings of a form. Those that are null are as for everybody. */
export function readSettings(fields: FormData): Settings {
  const text = (name: keyof Settings) => String(fields.get(`settings.${name}`) ?? "").trim();
  const whole = (name: keyof Settings) => (text(name) === "" ? null : Number(text(name)));
  const switched = (name: keyof Settings) => (text(name) === "" ? null : text(name) === "on");
  const models = linesOf(text("allowed_models"));
  return {
    transcription_enabled: switched("transcription_enabled"),
    vectorstore_sync_enabled: switched("vectorstore_sync_enabled"),
    vectorstore_sync_requests_per_minute: whole("vectorstore_sync_requests_per_minute"),
    requests_per_minute: whole("requests_per_minute"),
    storage_bytes: whole("storage_bytes"),
    allowed_models: models.length > 0 ? models : null,
  };
}

/** Returns the settings that were changed, so that what others changed meanwhile stays. */
export function changesOf(before: Settings, after: Settings): Partial<Settings> {
  const differs = (name: string) => JSON.stringify(before[name as keyof Settings] ?? null) !== JSON.stringify(after[name as keyof Settings] ?? null);
  return Object.fromEntries(Object.entries(after).filter(([name]) => differs(name)));
}
