// Texts that were edited and not saved, such as after a lost connection, with the ways back to them.

import { DOCUMENT, address } from "../addresses";
import { type Edit, keyOf, unsaved } from "../documents/edits";
import { counted } from "../knowledge/words";
import { Link } from "../router";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";

const TEXTS: Record<Edit["at"]["variant"], string> = { digitized: "digitized text", rewritten: "final content" };

/** The unsaved texts, each with a link to its editor. */
export function UnsavedTexts({ onFollow }: { onFollow: () => void }) {
  if (unsaved.value.length === 0) return null;
  return (
    <ul class="names">
      {unsaved.value.map(({ at, name }) => (
        <li key={keyOf(at)}>
          <Link to={address(DOCUMENT, { partner: at.partner, name: at.base, id: at.id }, { tab: at.variant })} onFollow={onFollow}>
            <bdi>{name}</bdi>
          </Link>{" "}
          <span class="hint">
            {TEXTS[at.variant]}, in <bdi>{at.base}</bdi>
          </span>
        </li>
      ))}
    </ul>
  );
}

const words = () => counted(unsaved.value.length, "unsaved text");

/** A button for the unsaved texts, while there are any. */
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
