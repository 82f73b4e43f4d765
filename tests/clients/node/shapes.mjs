// What structured answers and tools look like.

import { z } from "zod";

export const Weather = z.object({ city: z.string() });
export const Verdict = z.object({ good: z.boolean(), words: z.array(z.string()) });
export const verdict = { good: true, words: ["fine", "schön"] };
