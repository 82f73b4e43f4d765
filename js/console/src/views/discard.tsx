// Asks before changes that were not saved are discarded.

import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";

type DiscardProps = {
  /** Name of what was edited, such as `The text`. */
  what: string;
  isNew?: boolean;
  onDiscard: () => void;
  onClose: () => void;
};

export function Discard({ what, isNew = false, onDiscard, onClose }: DiscardProps) {
  return (
    <Dialog title="Discard your changes?" onClose={onClose}>
      <p>{isNew ? `${what} was never saved.` : `${what} stays as it was before you edited it.`}</p>
      <Form action="Discard" busy="Discarding…" isDanger onSend={async () => onDiscard()} onCancel={onClose} />
    </Dialog>
  );
}
