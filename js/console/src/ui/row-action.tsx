// Buttons of rows.

import { Icon, type IconName } from "./icon";

/** An icon button. Its label names the action and the row. */
export function RowAction({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <button type="button" class="bare" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}
