// The names of voices.

import type { Schemas } from "../api";
import { languageName } from "../ui/format";

/** Returns a tag without its region, which names of voices have. */
function withoutRegion(tag: string): string {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return tag;
  }
}

/** Returns a voice in words, such as `Ada, English, female`. What its name says already is left out. */
export function voiceWords({ name, language, gender }: Schemas["Voice"]): string {
  const words = name.toLowerCase().split(/[^\p{L}]+/u);
  const more = [language && languageName(withoutRegion(language)), gender].filter((part): part is string => Boolean(part));
  return [name, ...more.filter((part) => !words.includes(part.toLowerCase()))].join(", ");
}
