// Notices in a corner, for a few seconds, with a button to undo where that is possible.

import { signal } from "@preact/signals";

import { Icon } from "./icon";

type Toast = { id: number; text: string; kind: "done" | "failed"; undo?: () => void };

/** Time that a notice stays. Failures and notices with an undo stay longer. */
const STAYS_MS = 5_000;
const STAYS_LONGER_MS = 12_000;
const MOST = 5;

const toasts = signal<Toast[]>([]);
let made = 0;

function remove(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Shows that something was done; `undo` reverts it. */
export function notify(text: string, undo?: () => void): void {
  add({ text, kind: "done", ...(undo && { undo }) });
}

/** Shows a failure. */
export function notifyFailure(error: unknown): void {
  add({ text: error instanceof Error ? error.message : String(error), kind: "failed" });
}

function add(toast: Omit<Toast, "id">): void {
  const id = ++made;
  toasts.value = [...toasts.value, { ...toast, id }].slice(-MOST);
  const stays = toast.undo || toast.kind === "failed" ? STAYS_LONGER_MS : STAYS_MS;
  setTimeout(() => remove(id), stays);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, undo }) => (
        <div key={id} class={`toast ${kind}`}>
          <Icon name={kind === "done" ? "check" : "circle-alert"} />
          <span>{text}</span>
          {undo && (
            <button
              type="button"
              onClick={() => {
                remove(id);
                undo();
              }}
            >
              Undo
            </button>
          )}
          <button type="button" class="bare" aria-label="Dismiss" onClick={() => remove(id)}>
            <Icon name="x" />
          </button>
        </div>
      ))}
    </div>
  );
}
