// Signing out, after a question if something would be lost.

import { signal } from "@preact/signals";

import { sessions } from "../api";
import { systemClock } from "../clock";
import { Others } from "../others";
import { joinTabs } from "../tabs";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { notifyFailure } from "../ui/toasts";
import { listed, unfinished } from "../unfinished";
import { UnsavedTexts } from "./unsaved";

/** The sign-out that is asked about: `isEverywhere` if it is one of all browsers, `elsewhere` what other tabs of this one would lose. */
const asked = signal<{ isEverywhere: boolean; elsewhere: string[] } | null>(null);

const others = new Others({ join: joinTabs, own: () => unfinished.peek(), clock: systemClock });

/** Signs out of this browser, or of all browsers. Asks before if a tab of this browser would lose something. */
export async function signOut(isEverywhere: boolean): Promise<void> {
  const elsewhere = await others.ask();
  if (unfinished.peek().length + elsewhere.length > 0) asked.value = { isEverywhere, elsewhere };
  else await sessions.signOut(isEverywhere).catch(notifyFailure);
}

/** Closes the question, as at the end of a session. */
export function forgetSignOut(): void {
  asked.value = null;
}

export function SignOut() {
  if (!asked.value) return null;
  const { isEverywhere, elsewhere } = asked.value;
  return (
    <Dialog title="Sign out now?" onClose={forgetSignOut}>
      {unfinished.value.length > 0 && <p>This is lost: {listed(unfinished.value)}.</p>}
      <UnsavedTexts onFollow={forgetSignOut} />
      {elsewhere.length > 0 && <p>In other tabs, this is lost: {listed(elsewhere)}.</p>}
      <Form action="Sign out" busy="Signing out…" isDanger onSend={() => sessions.signOut(isEverywhere)} onCancel={forgetSignOut} />
    </Dialog>
  );
}
