// The names of voices.

import type { Schemas } from "../api";

const languages = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** Returns the name of a language without its region, which names of voices have. */
function languageName(tag: string): string {
  try {
    const { language } = new Intl.Locale(tag);
    return languages.of(language) ?? tag;
  } catch {
    return tag;
  }
}

/** Returns a voice in words, such as `Ada, English, female`. What its name says already is left out. */
export function voiceWords({ name, language, gender }: Schemas["Voice"]): string {
  const words = name.toLowerCase().split(/[^\p{L}]+/u);
  const more = [language && languageName(language), gender].filter((part): part is string => Boolean(part));
  return [name, ...more.filter((part) => !words.includes(part.toLowerCase()))].join(", ");
}
