// Edits that were not saved, such as after a lost connection, with the ways back to them.

import { unsaved } from "../edits";
import { counted } from "../knowledge/words";
import { Link } from "../router";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";

/** The unsaved edits, each with a link to its editor. */
export function UnsavedTexts({ onFollow }: { onFollow: () => void }) {
  if (unsaved.value.length === 0) return null;
  return (
    <ul class="names">
      {unsaved.value.map(({ key, to, name, part, within }) => (
        <li key={key}>
          <Link to={to} onFollow={onFollow}>
            <bdi>{name}</bdi>
          </Link>{" "}
          <span class="hint">
            {part}
            {within !== undefined && (
              <>
                , in <bdi>{within}</bdi>
              </>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

const words = () => counted(unsaved.value.length, "unsaved text");

/** A button for the unsaved edits, while there are any. */
export function UnsavedButton({ onOpen }: { onOpen: () => void }) {
  if (unsaved.value.length === 0) return null;
  return (
    <button type="button" class="unsaved" aria-label={words()} onClick={onOpen}>
      <Icon name="pencil" />
      <span>{words()}</span>
    </button>
  );
}

export function UnsavedDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={words()} onClose={onClose}>
      <p>Unsaved texts are kept until you save or discard them, sign out, or close the page.</p>
      <UnsavedTexts onFollow={onClose} />
    </Dialog>
  );
}
