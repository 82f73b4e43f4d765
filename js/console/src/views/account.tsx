// The session: its key, and when it ends.

import { api } from "../api";
import { ask } from "../problem";
import { Dialog } from "../ui/dialog";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { signOut } from "./sign-out";

/** Address of the licences of the packages that the console contains. The page names it. */
const licensesUrl = () => document.querySelector<HTMLLinkElement>('link[rel="license"]')?.href;

export function Account({ onClose }: { onClose: () => void }) {
  const session = useResource((call) => ask(api.GET("/api/console/session", call)), []);
  const leave = (isEverywhere: boolean) => {
    onClose();
    void signOut(isEverywhere);
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
      <footer>
        <button type="button" class="primary" onClick={() => leave(false)}>
          Sign out
        </button>
        <button type="button" onClick={() => leave(true)}>
          Sign out everywhere
        </button>
      </footer>
    </Dialog>
  );
}
