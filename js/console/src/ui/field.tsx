// Fields with their errors below them.

import type { VNode } from "preact";
import { useId } from "preact/hooks";

/** Attributes of the control of a field: they name the errors and the hint that describe it. */
export type ControlProps = { id: string; "aria-invalid": boolean; "aria-describedby": string };

type FieldProps = {
  label: string;
  /** Hides the label from sight, where the place of the field says as much. */
  isLabelHidden?: boolean;
  hint?: string;
  errors: readonly string[];
  children: (control: ControlProps) => VNode;
};

export function Field({ label, isLabelHidden = false, hint, errors, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "hidden" : ""}>
        {label}
      </label>
      {children({ id, "aria-invalid": errors.length > 0, "aria-describedby": `${id}-errors ${id}-hint` })}
      <div id={`${id}-errors`} class="field-errors">
        {errors.map((error) => (
          <p key={error}>{error}</p>
        ))}
      </div>
      <p id={`${id}-hint`} class="hint">
        {hint}
      </p>
    </div>
  );
}
