// New keys, which the server shows once. A key stays visible until the user dismisses it, even if the view that created it is gone.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { copy, copyKeys } from "./clipboard";
import { Dialog } from "./dialog";

const shown = signal<{ title: string; secret: string }[]>([]);

/** Shows a secret until it is dismissed. */
export function showOnce(title: string, secret: string): void {
  shown.value = [...shown.value, { title, secret }];
}

/** Removes all secrets, as at sign-out. */
export function forgetShown(): void {
  shown.value = [];
}

function Secret({ title, secret }: { title: string; secret: string }) {
  const field = useRef<HTMLInputElement>(null);
  const outcome = useSignal("");
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);
  const copySecret = async () => {
    const isCopied = await copy(secret, field.current, navigator.clipboard);
    outcome.value = isCopied ? "Copied." : `Press ${copyKeys(navigator.platform)} to copy the selected key.`;
  };
  return (
    <Dialog title={title}>
      <p>Copy the key now. It is not shown again.</p>
      <input ref={field} class="secret" readOnly value={secret} aria-label="API key" onFocus={(event) => event.currentTarget.select()} />
      <p class="outcome" role="status">
        {outcome.value}
      </p>
      <footer>
        <button type="button" class="primary" onClick={() => void copySecret()}>
          Copy
        </button>
        <button type="button" onClick={() => (shown.value = shown.value.slice(1))}>
          Done
        </button>
      </footer>
    </Dialog>
  );
}

export function OnceShown() {
  const [first] = shown.value;
  return first ? <Secret key={first.secret} {...first} /> : null;
}
