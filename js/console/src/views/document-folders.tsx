// A choice of a folder of a knowledge base.

import { useSignal } from "@preact/signals";

import { type Schemas, api } from "../api";
import { multipart } from "../knowledge/forms";
import { Problem, ask } from "../problem";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";

/** Reads the names of folders. */
function useFolders(partner: string, base: string) {
  return useResource(
    (call) => ask(api.GET("/api/folders/{partner}/{kb}", { ...call, params: { path: { partner, kb: base } } })).then(({ folders }) => folders),
    [partner, base],
    { partner, kinds: ["folder"], base },
  );
}

/** No name of a folder has a slash. */
const NEW = "/";

/** Returns the folder that a form with {@link FolderFields} names; `initial` while the folders are read. Creates a new one. */
export async function folderOf(partner: string, base: string, fields: FormData, initial: string | null): Promise<string> {
  const chosen = fields.get("folder") ?? initial;
  if (typeof chosen !== "string") throw new Problem(0, "invalid", "Choose a folder.", "folder");
  if (chosen !== NEW) return chosen;
  const name = String(fields.get("new-folder")).trim();
  const params = { path: { partner, kb: base } };
  await ask<unknown>(api.POST("/api/folders/{partner}/{kb}", { params, body: { name } as Schemas["NewFolderForm"], bodySerializer: multipart }));
  return name;
}

type FolderFieldsProps = { partner: string; base: string; initial: string | null; leftOut?: string | null };

/** Fields that choose a folder other than `leftOut`, or name a new one. */
export function FolderFields({ partner, base, initial, leftOut = null }: FolderFieldsProps) {
  const folders = useFolders(partner, base);
  return <Shown of={folders}>{(names) => <Fields folders={names.filter((name) => name !== leftOut)} initial={initial} />}</Shown>;
}

function Fields({ folders, initial }: { folders: string[]; initial: string | null }) {
  const chosen = useSignal(initial ?? folders[0] ?? NEW);
  return (
    <div class="fields">
      <label>
        Folder
        <select name="folder" value={chosen.value} onChange={(event) => (chosen.value = event.currentTarget.value)}>
          {folders.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
          <option value={NEW}>New folder…</option>
        </select>
      </label>
      {chosen.value === NEW && (
        <label>
          Name of the new folder
          <input name="new-folder" maxLength={200} required />
        </label>
      )}
    </div>
  );
}
