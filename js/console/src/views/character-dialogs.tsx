// Dialogs that delete a character and restore a version.

import { CHARACTER, CHARACTERS, address } from "../addresses";
import { FOREGROUND, api } from "../api";
import { draftOf } from "../characters/draft";
import { characterEdits } from "../characters/edits";
import { type CharacterView, readNewest, update } from "../characters/save";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { navigate, useStays } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatNumber } from "../ui/format";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { notify } from "../ui/toasts";
import { CharacterChanges } from "./character-changes";

type DeleteProps = { partner: string; name: string; versions: number; onClose: () => void };

export function DeleteCharacter({ partner, name, versions, onClose }: DeleteProps) {
  const stays = useStays();
  const remove = async () => {
    await ask(api.DELETE("/api/characters/{partner}/{name}", { headers: FOREGROUND, params: { path: { partner, name } } }));
    onClose();
    characterEdits.end({ partner, name });
    if (stays.isHere()) navigate(address(CHARACTERS, { partner }));
    notify(`${name} is deleted`);
  };
  return (
    <Dialog title={`Delete the character ${name}?`} onClose={onClose}>
      <p>
        {versions === 1 ? "Its only version is" : `All ${counted(versions, "version")} are`} deleted with it. Calls in progress go on; new ones cannot name it. This cannot be
        undone.
      </p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}

type RestoreProps = { partner: string; name: string; of: CharacterView; onClose: () => void };

/** Saves an old version as a new one, if the newest is still that which was compared. */
export function Restore({ partner, name, of, onClose }: RestoreProps) {
  const stays = useStays();
  const newest = useResource(() => readNewest(partner, name), [partner, name, of.version]);
  const restore = async (before: CharacterView) => {
    const saved = await update(partner, name, draftOf(name, of), before.version).catch(async (error: unknown) => {
      await newest.reload();
      throw error;
    });
    onClose();
    if (stays.isHere()) navigate(address(CHARACTER, { partner, name }));
    notify(`Version ${formatNumber(of.version)} is restored as version ${formatNumber(saved.version)}`);
  };
  return (
    <Dialog title={`Restore version ${formatNumber(of.version)}?`} onClose={onClose} wide>
      <Shown of={newest}>
        {(before) => (
          <>
            <p>
              It is saved as version {formatNumber(before.version + 1)}. Version {formatNumber(before.version)} stays in the list.
            </p>
            <CharacterChanges before={before} after={of} />
            <Form action="Restore" busy="Restoring…" onSend={() => restore(before)} onCancel={onClose} />
          </>
        )}
      </Shown>
    </Dialog>
  );
}
