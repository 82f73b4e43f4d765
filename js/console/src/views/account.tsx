// The session: its key, when it ends, and signing out.

import { useSignal } from "@preact/signals";

import { api, sessions } from "../api";
import { ask, toProblem } from "../problem";
import { Dialog } from "../ui/dialog";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { notifyFailure } from "../ui/toasts";

/** Signs out of this browser, or of all browsers. */
export async function signOut(isEverywhere: boolean): Promise<void> {
  try {
    await sessions.signOut(isEverywhere);
  } catch (error) {
    notifyFailure(error);
  }
}

/** Address of the licences of the packages that the console contains. The page names it. */
const licensesUrl = () => document.querySelector<HTMLLinkElement>('link[rel="license"]')?.href;

export function Account({ onClose }: { onClose: () => void }) {
  const session = useResource((call) => ask(api.GET("/api/console/session", call)), []);
  const isBusy = useSignal(false);
  const error = useSignal("");
  const leave = async (isEverywhere: boolean) => {
    if (isBusy.value) return;
    isBusy.value = true;
    error.value = "";
    await sessions.signOut(isEverywhere).catch((thrown: unknown) => {
      error.value = toProblem(thrown).message;
    });
    isBusy.value = false;
  };
  return (
    <Dialog title="Your session" onClose={onClose}>
      <Shown of={session}>
        {({ isAdmin, partner, key_id, scopes, created_at, expires_at }) => (
          <dl>
            <dt>Signed in as</dt>
            <dd>{isAdmin ? "administrator" : partner}</dd>
            <dt>Key</dt>
            <dd>
              <code>{key_id}</code>
            </dd>
            <dt>Allowed for</dt>
            <dd>{scopes?.join(", ") ?? "everything"}</dd>
            <dt>Signed in</dt>
            <dd>
              <Time at={created_at} />
            </dd>
            <dt>Ends, unless used</dt>
            <dd>
              <Time at={expires_at} />
            </dd>
          </dl>
        )}
      </Shown>
      <p class="hint">Signing out everywhere ends all sessions and sign-in links of this key.</p>
      <p>
        <a href={licensesUrl() ?? ""} target="_blank" rel="noreferrer noopener">
          Licences of the parts
        </a>
      </p>
      <p class="error" role="alert">
        {error.value}
      </p>
      <footer>
        <button type="button" class="primary" aria-disabled={isBusy.value} onClick={() => void leave(false)}>
          Sign out
        </button>
        <button type="button" aria-disabled={isBusy.value} onClick={() => void leave(true)}>
          Sign out everywhere
        </button>
      </footer>
    </Dialog>
  );
}
