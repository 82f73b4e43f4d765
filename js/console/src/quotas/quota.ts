// Quotas: their state, their limits, and the bodies that create and change them.

import type { Schemas } from "../api";
import type { Standing } from "../knowledge/budget";
import { linesOf } from "../lines";

export type Quota = Schemas["QuotaView"];
export type QuotaBody = Schemas["QuotaBody"];
export type Kind = Schemas["QuotaKind"];
export type Period = Schemas["Period"];

export const LIMITED = ["tokens", "dollars", "characters", "seconds"] as const;
export type Limited = (typeof LIMITED)[number];

export const LIMIT_NAMES: Record<Limited, string> = {
  tokens: "Tokens",
  dollars: "US dollars",
  characters: "Characters spoken",
  seconds: "Seconds of calls",
};

/** Units that follow an amount. */
export const LIMIT_UNITS: Record<Limited, string> = { tokens: " tokens", dollars: "", characters: " characters spoken", seconds: " call time" };

export const KIND_NAMES: Record<Kind, string> = { text: "text", speech: "speech", call: "calls", transcript: "transcripts" };
export const KINDS = Object.keys(KIND_NAMES) as Kind[];

export const PERIOD_NAMES: Record<Period, string> = { day: "each day", month: "each month", lifetime: "for its lifetime" };
export const RESETS: Record<Period, string> = { day: "Limits are for a day.", month: "Limits are for a month.", lifetime: "Limits are for the lifetime of the quota." };
export const PERIODS = Object.keys(PERIOD_NAMES) as Period[];

export type QuotaState = "active" | "used up" | "switched off" | "expired" | "revoked";

/** Returns the state of a quota: `active` if its key can be used, or else why it cannot. */
export function stateOf({ revoked_at, expires_at, disabled, remaining }: Quota, now = new Date()): QuotaState {
  if (revoked_at) return "revoked";
  if (expires_at && new Date(expires_at) <= now) return "expired";
  if (disabled) return "switched off";
  const isLeft = (limited: Limited) => remaining[limited] === null || remaining[limited] === undefined || Number(remaining[limited]) > 0;
  return LIMITED.every(isLeft) ? "active" : "used up";
}

/** Returns a limit with what is used and reserved of it. */
export function standingOf({ limits, used, reserved, remaining }: Quota, measure: Limited): Standing {
  return { limit: limits[measure] ?? null, consumed: used[measure], reserved: reserved[measure], remaining: remaining[measure] ?? null };
}

/** Returns the measures that are limited. */
export const limitedOf = (quota: Quota) => LIMITED.filter((measure) => quota.limits[measure] !== null && quota.limits[measure] !== undefined);

const sorted = (value: unknown) => JSON.stringify(value, (_, of) => (of && typeof of === "object" && !Array.isArray(of) ? Object.entries(of).sort() : of));

/** Returns what a form sets, as the API takes it. Names of fields are those of the API. */
export function readForm(fields: FormData): QuotaBody {
  const text = (name: string) => String(fields.get(name) ?? "").trim();
  const whole = (name: string) => (text(name) === "" ? null : Number(text(name)));
  const list = (name: string) => (linesOf(text(name)).length === 0 ? null : linesOf(text(name)));
  return {
    name: text("name"),
    kinds: KINDS.filter((kind) => fields.getAll("kinds").includes(kind)),
    period: PERIODS.find((period) => period === text("period")) ?? "month",
    limits: {
      tokens: whole("limits.tokens"),
      dollars: text("limits.dollars") || null,
      characters: whole("limits.characters"),
      seconds: whole("limits.seconds"),
    },
    allowed_models: list("allowed_models"),
    allowed_characters: list("allowed_characters"),
  };
}

/** Returns what of a form differs from the quota, so that what others changed meanwhile stays. */
export function changesOf(quota: Quota, body: QuotaBody): QuotaBody {
  const before: QuotaBody = {
    name: quota.name,
    kinds: KINDS.filter((kind) => quota.kinds.includes(kind)),
    period: quota.period,
    limits: quota.limits,
    allowed_models: quota.allowed_models ?? null,
    allowed_characters: quota.allowed_characters ?? null,
    disabled: quota.disabled,
  };
  const changed = Object.entries(body).filter(([name, value]) => sorted(value) !== sorted(before[name as keyof QuotaBody]));
  return Object.fromEntries(changed) as QuotaBody;
}
