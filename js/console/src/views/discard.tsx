// Asks before changes that were not saved are discarded.

import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";

/** `what` names what was edited, such as `The text`. */
export function Discard({ what, onDiscard, onClose }: { what: string; onDiscard: () => void; onClose: () => void }) {
  return (
    <Dialog title="Discard your changes?" onClose={onClose}>
      <p>{what} stays as it was before you edited it.</p>
      <Form action="Discard" busy="Discarding…" isDanger onSend={async () => onDiscard()} onCancel={onClose} />
    </Dialog>
  );
}
