// Signing in: with an API key, or by a link that was opened.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { leavePage, sessions } from "../api";
import { toProblem } from "../problem";
import { linkFailure, takeToken } from "../sign-in-link";
import { Dialog } from "../ui/dialog";
import { focusHeading } from "../ui/focus";
import { Form } from "../ui/form";
import { listed, unfinished } from "../unfinished";

/** Token of a link that was opened and is not used yet. */
const token = signal<string | null>(null);
/** Why the link is of no use any more; empty if there is no such link. */
const usedUp = signal("");

function take(): void {
  const found = takeToken({ location, history });
  if (found === null) return;
  token.value = found;
  usedUp.value = "";
}

// Before anything is rendered, and for a link that is opened in this tab later.
take();
addEventListener("hashchange", take);

async function useLink(link: string): Promise<void> {
  try {
    await sessions.signIn({ link });
    token.value = null;
  } catch (thrown) {
    const problem = toProblem(thrown);
    const failure = linkFailure(problem);
    if (!failure.isUsedUp) throw problem;
    token.value = null;
    usedUp.value = failure.message;
  }
}

function ByLink({ link }: { link: string }) {
  const hasFailed = useSignal(false);
  return (
    <>
      <p>You opened a sign-in link. It can be used once.</p>
      <Form
        action={hasFailed.value ? "Try again" : "Sign in"}
        busy="Signing in…"
        onSend={async () => {
          try {
            await useLink(link);
          } catch (error) {
            hasFailed.value = true;
            throw error;
          }
        }}
      />
    </>
  );
}

function ByKey() {
  return (
    <Form
      action="Sign in"
      busy="Signing in…"
      explain={(problem) => (problem.status === 401 ? "This API key is not valid." : problem.message)}
      onSend={async (fields) => {
        await sessions.signIn({ api_key: String(fields.get("api_key")).trim() });
        usedUp.value = "";
      }}
    >
      {usedUp.value && <p role="alert">{usedUp.value}</p>}
      <label>
        API key
        <input type="password" name="api_key" autocomplete="current-password" required />
      </label>
      <p class="hint">
        Use an administrator key, or a secret key of a partner. <code>colloquy key create --admin</code> creates one.
      </p>
    </Form>
  );
}

function Ways() {
  if (token.value === null) return <ByKey />;
  return (
    <>
      <ByLink link={token.value} />
      <p>
        <button type="button" onClick={() => (token.value = null)}>
          Use an API key instead
        </button>
      </p>
    </>
  );
}

/** The page shown while signed out. */
export function SignIn() {
  const page = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = "Sign in · Colloquy";
    page.current?.querySelector<HTMLElement>("input, button")?.focus();
    return () => void requestAnimationFrame(focusHeading);
  }, []);
  return (
    <main class="sign-in" ref={page}>
      <div>
        <h1 tabIndex={-1}>Sign in to Colloquy</h1>
        <Ways />
      </div>
    </main>
  );
}

/** Dialogs above a page that stays: after the session ended, and for a link that was opened while signed in. */
export function SignInDialogs() {
  if (sessions.isEnded.value) {
    return (
      <Dialog key="ended" title="Your session has ended">
        <p>Sign in again to continue. What you entered on this page is kept if you sign in with the same key.</p>
        <Ways />
        {unfinished.value.length > 0 && <p class="hint">Leaving this page loses {listed(unfinished.value)}.</p>}
        <p>
          <button type="button" onClick={leavePage}>
            Leave this page
          </button>
        </p>
      </Dialog>
    );
  }
  if (token.value === null && usedUp.value === "") return null;
  const close = () => {
    token.value = null;
    usedUp.value = "";
  };
  return (
    <Dialog key="link" title="Sign in by link" onClose={close}>
      {token.value === null ? <p role="alert">{usedUp.value}</p> : <ByLink link={token.value} />}
      <p class="hint">You are signed in already. Another user starts with a new page.</p>
    </Dialog>
  );
}
