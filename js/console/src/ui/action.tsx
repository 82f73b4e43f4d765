// Buttons that do something at once.

import { useSignal } from "@preact/signals";

import { Icon, type IconName } from "./icon";
import { notifyFailure } from "./toasts";

type ActionProps = { icon: IconName; label: string; busy: string; onRun: () => Promise<void> };

/** A button that runs once at a time. A failure is shown as a notice. */
export function Action({ icon, label, busy, onRun }: ActionProps) {
  const isBusy = useSignal(false);
  const run = async () => {
    if (isBusy.value) return;
    isBusy.value = true;
    await onRun().catch(notifyFailure);
    isBusy.value = false;
  };
  return (
    <button type="button" aria-disabled={isBusy.value} onClick={() => void run()}>
      <Icon name={icon} /> {isBusy.value ? busy : label}
    </button>
  );
}
