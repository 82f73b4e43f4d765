// Sign-in links, which end with `#sign-in=` and a token that can be used once.
//
// The token is removed from the address at once, and from the history of the tab. Only a press of a button uses it, so that a preview which loads the
// page does not use it up.

import type { Problem } from "./problem";

const MARK = "#sign-in=";

/** Returns the token of a link. */
export function tokenOf(hash: string): string | null {
  return hash.startsWith(MARK) && hash.length > MARK.length ? hash.slice(MARK.length) : null;
}

type Place = { location: Pick<Location, "hash" | "pathname" | "search">; history: Pick<History, "replaceState" | "state"> };

/** Returns the token in the address and removes it there. */
export function takeToken({ location, history }: Place): string | null {
  const token = tokenOf(location.hash);
  if (token !== null) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}

/** Explains why a link did not sign in. Only 401 means that it is used up. */
export function linkFailure(problem: Problem): { message: string; isUsedUp: boolean } {
  if (problem.status !== 401) return { message: problem.message, isUsedUp: false };
  return { message: "This link was used or has expired. Sign in with an API key.", isUsedUp: true };
}
