// Buttons of rows, which may disappear with what they do.

import { useRef } from "preact/hooks";

import { useFocusHandover } from "./focus";
import { Icon, type IconName } from "./icon";

/** An icon button. Its label names the action and the row. */
export function RowAction({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useFocusHandover(button);
  return (
    <button ref={button} type="button" class="bare" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}
