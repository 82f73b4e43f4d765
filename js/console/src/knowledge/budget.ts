// Budgets: their bars, and changes of their limits.

export const LIMITS = ["character_limit", "token_limit", "dollar_limit_usd"] as const;
export type LimitName = (typeof LIMITS)[number];
export type Limits = { character_limit?: number | null; token_limit?: number | null; dollar_limit_usd?: string | null };
export type Amount = number | string;
export type Standing = { limit?: Amount | null; consumed: Amount; reserved: Amount; remaining?: Amount | null };

/** Fractions of a limit, from 0 to 1, that do not add up to more than 1. */
export type Bar = { used: number; reserved: number; isFull: boolean };

/** Returns the bar of a limit; null without a limit. */
export function barOf({ limit, consumed, reserved }: Standing): Bar | null {
  if (limit === null || limit === undefined) return null;
  const most = Number(limit);
  if (most <= 0) return { used: 1, reserved: 0, isFull: true };
  const used = Math.min(1, Number(consumed) / most);
  const held = Math.min(1 - used, Number(reserved) / most);
  return { used, reserved: held, isFull: Number(consumed) + Number(reserved) >= most };
}

export type Measures = { characters: Standing; tokens: Standing; dollars: Standing };
export type Measure = keyof Measures;
const MEASURES: readonly Measure[] = ["characters", "tokens", "dollars"];

/** Returns the limit that is used up first; null without limits. */
export function tightestOf<Name extends string>(standings: readonly (readonly [Name, Standing])[]): { measure: Name; bar: Bar } | null {
  const limited = standings.flatMap(([measure, standing]) => {
    const bar = barOf(standing);
    return bar ? [{ measure, bar }] : [];
  });
  const fraction = ({ bar }: { bar: Bar }) => (bar.isFull ? 2 : bar.used + bar.reserved);
  return limited.sort((a, b) => fraction(b) - fraction(a))[0] ?? null;
}

/** Returns the limit of a budget that is used up first; null without limits. */
export const tightest = (budget: Measures) => tightestOf(MEASURES.map((measure) => [measure, budget[measure]] as const));

/** Texts of the fields of a form. An empty text is no limit. */
export type LimitTexts = Record<LimitName, string>;
/** Texts of the limits that differ from the present ones. */
export type LimitChanges = Partial<LimitTexts>;

export function limitTexts(limits: Limits): LimitTexts {
  const text = (name: LimitName) => String(limits[name] ?? "");
  return { character_limit: text("character_limit"), token_limit: text("token_limit"), dollar_limit_usd: text("dollar_limit_usd") };
}

/** Patterns of the fields. Counts stay below 2^53, dollars have at most 8 decimals. */
export const LIMIT_PATTERNS: LimitTexts = { character_limit: "[0-9]{1,15}", token_limit: "[0-9]{1,15}", dollar_limit_usd: "[0-9]{1,10}(\\.[0-9]{1,8})?" };

function isValid(name: LimitName, text: string): boolean {
  return text === "" || new RegExp(`^${LIMIT_PATTERNS[name]}$`).test(text);
}

/** Returns the limits that were changed; null if a text is no limit. */
export function limitChanges(typed: LimitTexts, limits: Limits): LimitChanges | null {
  const [now, changes] = [limitTexts(limits), {} as LimitChanges];
  for (const name of LIMITS) {
    const text = typed[name].trim();
    if (!isValid(name, text)) return null;
    const isSame = text === "" || now[name] === "" ? text === now[name] : Number(text) === Number(now[name]);
    if (!isSame) changes[name] = text;
  }
  return changes;
}

/** Returns the body of a request that changes limits. */
export function limitsBody(changes: LimitChanges): Limits {
  const number = (text: string) => (text === "" ? null : Number(text));
  const { character_limit: characters, token_limit: tokens, dollar_limit_usd: dollars } = changes;
  return {
    ...(characters !== undefined && { character_limit: number(characters) }),
    ...(tokens !== undefined && { token_limit: number(tokens) }),
    ...(dollars !== undefined && { dollar_limit_usd: dollars === "" ? null : dollars }),
  };
}

/** Returns the changes that revert others. */
export function revertedChanges(changes: LimitChanges, limits: Limits): LimitChanges {
  const before = limitTexts(limits);
  return Object.fromEntries(LIMITS.filter((name) => changes[name] !== undefined).map((name) => [name, before[name]]));
}

/** Returns true if limits are still those that changes made them. */
export function areKept(changes: LimitChanges, limits: Limits): boolean {
  const unchanged = limitChanges({ ...limitTexts(limits), ...changes }, limits);
  return unchanged !== null && Object.keys(unchanged).length === 0;
}

export type WakePlan = { documents: number; still_blocked: number; channels: number; complete: boolean };

/** Returns true if a change of limits wakes something or leaves something blocked. */
export const concernsSomething = ({ documents, still_blocked, channels }: WakePlan) => documents + still_blocked + channels > 0;
