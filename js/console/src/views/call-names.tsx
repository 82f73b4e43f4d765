// Names of calls, of their states and of their characters, with links.

import { CALL, CHARACTER, address } from "../addresses";
import { may } from "../api";
import type { CallState } from "../calls/filter";
import { callId, parseReference, shortId } from "../calls/names";
import { Link } from "../router";

export const STATE_NAMES: Record<CallState, string> = {
  starting: "starting",
  ongoing: "in progress",
  completed: "completed",
  error: "failed",
};

const STATE_CLASSES: Record<CallState, string> = { starting: "", ongoing: "up", completed: "plain", error: "down" };

export function CallStateLabel({ state }: { state: CallState }) {
  return <span class={`state ${STATE_CLASSES[state]}`}>{STATE_NAMES[state]}</span>;
}

/** Returns the name of a call's character. */
export function characterName(reference: string | null | undefined, partner: string): string {
  if (!reference) return "custom character";
  const found = parseReference(reference);
  return found?.partner === partner ? found.name : reference;
}

/** The character of a call, with a link to it if the session may read it. */
export function CallCharacter({ partner, reference }: { partner: string; reference: string | null | undefined }) {
  const name = characterName(reference, partner);
  if (!reference) return <span class="none">{name}</span>;
  const isOwn = parseReference(reference)?.partner === partner;
  return isOwn && may("characters") ? <Link to={address(CHARACTER, { partner, name })}>{name}</Link> : <>{name}</>;
}

/** The subject of a delivery, with a link to it if it is a call and the session may read calls. */
export function Subject({ partner, subject }: { partner: string; subject: string }) {
  const id = callId(subject);
  if (id === null) return <code>{subject}</code>;
  const name = `call ${shortId(id)}`;
  return may("calls") ? <Link to={address(CALL, { partner, id })}>{name}</Link> : <>{name}</>;
}
