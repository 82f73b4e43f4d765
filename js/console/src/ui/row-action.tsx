// Buttons of rows.

import { Icon, type IconName } from "./icon";

type RowActionProps = { icon: IconName; label: string; isDisabled?: boolean; onClick: () => void };

/** An icon button. Its label names the action and the row. One that is disabled keeps the focus. */
export function RowAction({ icon, label, isDisabled = false, onClick }: RowActionProps) {
  return (
    <button type="button" class="bare" aria-label={label} title={label} {...(isDisabled && { "aria-disabled": true })} onClick={() => !isDisabled && onClick()}>
      <Icon name={icon} />
    </button>
  );
}
