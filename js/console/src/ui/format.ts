// Numbers, amounts and times in the locale of the reader.

const number = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0, roundingMode: "floor" } as Intl.NumberFormatOptions);
const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const score = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 4 });
const milliseconds = new Intl.NumberFormat(undefined, { style: "unit", unit: "millisecond", maximumFractionDigits: 1 });
const seconds = new Intl.NumberFormat(undefined, { style: "unit", unit: "second", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const languages = new Intl.DisplayNames(["en"], { type: "language" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export const formatNumber = (value: number) => number.format(value);

/** Returns a large number with at most one decimal, such as `1.2M`. */
export const formatCompact = (value: number) => compact.format(value);

/** Returns a fraction as whole percents, rounded down: 100 % is all of it. */
export const formatPercent = (fraction: number) => percent.format(fraction);

/** Returns a part of a whole as whole percents, rounded to the nearest. */
export const formatShare = (fraction: number) => share.format(fraction);

/** Returns a score that has no bounds, with four significant digits. */
export const formatScore = (value: number) => score.format(value);

/** Returns a figure from 0 to 1 with as many decimals as are given. */
export const formatFraction = (value: number, decimals: number) =>
  new Intl.NumberFormat(undefined, { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(value);

/** Returns a time in milliseconds with its unit, such as `1,250 ms`. */
export const formatMs = (value: number) => milliseconds.format(value);

/** Returns a short time in seconds with its unit and a decimal, such as `2.5 sec`. */
export const formatSeconds = (value: number) => seconds.format(value);

/** Returns the name of a language, such as `German` for `de`; a tag that is malformed as it is. */
export function languageName(tag: string): string {
  try {
    return languages.of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** Returns the distance of a time from now, such as `5 minutes ago` or `in 2 days`. */
export function formatRelative(at: Date, now = new Date()): string {
  const seconds = (at.getTime() - now.getTime()) / 1_000;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / length), unit);
}

export const formatAbsolute = (at: Date) => absolute.format(at);

/** Returns a size in bytes with a decimal prefix, such as `1.5 MB`. */
export function formatBytes(bytes: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const unit = units[step] ?? "byte";
  return new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: step === 0 ? "long" : "short", maximumFractionDigits: step === 0 ? 0 : 1 }).format(
    bytes / 1_000 ** step,
  );
}

/** Returns a duration in seconds, such as `1:05` or `1:00:05`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3_600);
  const minutes = Math.floor((whole % 3_600) / 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** Returns an amount of US dollars with its decimals, two to eight of them. */
export function formatUsd(amount: string | number): string {
  return new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: 8 }).format(
    Number(amount),
  );
}
