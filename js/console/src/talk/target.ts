// Whom the page calls, and how it tells the API.

import { FOREGROUND, api, sessions } from "../api";
import { callId } from "../calls/names";
import { given } from "../characters/problems";
import { readNewest, readVersion } from "../characters/save";
import { systemClock } from "../clock";
import { type Answer, Problem, ask } from "../problem";
import { joinTabs } from "../tabs";
import { type Target, atOrigin } from "./address";
import { type Called, request } from "./handover";

/** Seconds after which a call ends. */
export const MAX_SECONDS = 900;

/** Reads who is called; null if it is a draft whose editor is closed. */
export async function readCalled(target: Target): Promise<Called | null> {
  const { partner } = target;
  if ("draft" in target) return request(joinTabs, target.draft, systemClock);
  const { name, version } = target;
  const { personality, parameters, reference } = await (version === null ? readNewest(partner, name) : readVersion(partner, name, version));
  // Of versions, a reference is the newest.
  const character = version === null ? reference : { personality, parameters };
  return { name: parameters.name ?? parameters.robot_name ?? name, character, values: {} };
}

/** Creates a call with a character. */
export async function createCall(partner: string, { character, values }: Called): Promise<{ id: string; signedUrl: string }> {
  const isAdmin = sessions.current.peek()?.isAdmin === true;
  const body = {
    // Its type stands for a text or an object.
    character: character as unknown as Record<string, never>,
    call_time_limit_seconds: String(MAX_SECONDS),
    character_params: given(values) as Record<string, never>,
    ...(isAdmin && { partner }),
  };
  const { data } = await ask(api.POST("/v2/calls", { headers: FOREGROUND, body }) as Promise<Answer<{ data: { id: string; signedUrl?: string | null } }>>);
  const id = callId(data.id);
  if (!id || !data.signedUrl) throw new Problem(0, "not_joinable", "The server created a call that cannot be joined.");
  return { id, signedUrl: atOrigin(data.signedUrl, location) };
}

/** Ends a call that nobody joins. One that cannot be ended now ends when its address expires. */
export function cancelCall(id: string): void {
  const params = { path: { call_id: id } };
  void ask(api.POST("/v2/calls/{call_id}/end", { headers: FOREGROUND, params })).catch(() => {});
}
