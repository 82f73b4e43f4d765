// Usage of today.

import type { Schemas } from "../api";

/** Returns the day of the server, which counts in UTC. */
export const todayUtc = (now = new Date()) => now.toISOString().slice(0, 10);

/** Returns true if something was used that cost nothing: the settings of the server may lack its price. */
export const isLowerBound = ({ rows }: Pick<Schemas["UsageReport"], "rows">) =>
  rows.some(({ dollars, tokens, characters, seconds }) => Number(dollars) === 0 && tokens + characters + seconds > 0);
