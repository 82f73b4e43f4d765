// Forms: sent once at a time, with the error beside the button.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { useId, useRef } from "preact/hooks";

import { type Problem, toProblem } from "../problem";

type FormProps = {
  children?: ComponentChildren;
  /** Text of the button, and its text while the form is sent. */
  action: string;
  busy: string;
  isDanger?: boolean;
  /** Closes the form without sending it. */
  onCancel?: () => void;
  /** Gets the fields after each change of a text. */
  onType?: (fields: FormData) => void;
  /** Sends the form. Errors that it throws are shown. */
  onSend: (fields: FormData) => Promise<void>;
  /** Returns the text to show for an error; its message by default. */
  explain?: (problem: Problem) => string;
};

/** A form with its button. The button keeps the focus while the form is sent. */
export function Form({ children, action, busy, isDanger = false, onCancel, onType, onSend, explain }: FormProps) {
  const error = useSignal("");
  const isBusy = useSignal(false);
  const errorId = useId();
  const form = useRef<HTMLFormElement>(null);

  const send = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    error.value = "";
    try {
      await onSend(new FormData(event.currentTarget));
    } catch (thrown) {
      const problem = toProblem(thrown);
      error.value = explain?.(problem) ?? problem.message;
      const field = problem.field && form.current?.elements.namedItem(problem.field);
      if (field instanceof HTMLElement) field.focus();
    } finally {
      isBusy.value = false;
    }
  };

  return (
    <form ref={form} onSubmit={(event) => void send(event)} onInput={(event) => onType?.(new FormData(event.currentTarget))} aria-describedby={errorId}>
      {children}
      <p id={errorId} class="error" role="alert">
        {error.value}
      </p>
      <footer>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
        <button type="submit" class={isDanger ? "danger" : "primary"} aria-disabled={isBusy.value}>
          {isBusy.value ? busy : action}
        </button>
      </footer>
    </form>
  );
}
