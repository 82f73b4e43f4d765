// Dialogs: native ones, which keep the focus inside and close on Escape.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { focusHeading } from "./focus";
import { Icon } from "./icon";

type DialogProps = {
  title: string;
  /** Closes the dialog. Without this callback, neither Escape nor a button closes it. */
  onClose?: () => void;
  children: ComponentChildren;
  wide?: boolean;
};

/** A dialog that is open for as long as it is rendered. The focus returns to where it was. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const isLeaving = useRef(false);
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    // The browser would focus the button that closes the dialog.
    dialog?.querySelector<HTMLElement>("input, select, textarea, footer button")?.focus();
    return () => {
      isLeaving.current = true;
      dialog?.close();
      if (before instanceof HTMLElement && before !== document.body && before.isConnected) before.focus();
      else focusHeading();
    };
  }, []);
  // Browsers close a dialog on the second Escape, whatever the page says.
  const closed = () => {
    if (isLeaving.current) return;
    if (onClose) onClose();
    else element.current?.showModal();
  };
  return (
    <dialog
      ref={element}
      class={wide ? "wide" : ""}
      aria-label={title}
      onClose={closed}
      onCancel={(event) => {
        if (!onClose && event.target === event.currentTarget) event.preventDefault();
      }}
    >
      <header>
        <h2>{title}</h2>
        {onClose && (
          <button type="button" class="bare" aria-label="Close" onClick={onClose}>
            <Icon name="x" />
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

/** Returns true if a dialog is open. */
export const isDialogOpen = () => document.querySelector("dialog[open]") !== null;
