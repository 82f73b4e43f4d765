// Signing out, after a question if something would be lost.

import { signal } from "@preact/signals";

import { sessions } from "../api";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { notifyFailure } from "../ui/toasts";
import { listed, unfinished } from "../unfinished";
import { UnsavedTexts } from "./unsaved";

/** The sign-out that is asked about; `isEverywhere` if it is one of all browsers. */
const asked = signal<{ isEverywhere: boolean } | null>(null);

/** Signs out of this browser, or of all browsers. Asks before if something would be lost. */
export function signOut(isEverywhere: boolean): void {
  if (unfinished.peek().length > 0) asked.value = { isEverywhere };
  else sessions.signOut(isEverywhere).catch(notifyFailure);
}

/** Closes the question, as at the end of a session. */
export function forgetSignOut(): void {
  asked.value = null;
}

export function SignOut() {
  if (!asked.value) return null;
  const { isEverywhere } = asked.value;
  return (
    <Dialog title="Sign out now?" onClose={forgetSignOut}>
      {unfinished.value.length > 0 && <p>This is lost: {listed(unfinished.value)}.</p>}
      <UnsavedTexts onFollow={forgetSignOut} />
      <Form action="Sign out" busy="Signing out…" isDanger onSend={() => sessions.signOut(isEverywhere)} onCancel={forgetSignOut} />
    </Dialog>
  );
}
