// The selected folder of a knowledge base, above its documents.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { type Schemas, api } from "../api";
import { StateWords } from "../knowledge/figures";
import { findEntry } from "../knowledge/find";
import { Spend } from "../knowledge/spend";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { setQuery } from "../router";
import { formatBytes } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { ChannelPanel } from "./base-channel";
import { DeleteFolder } from "./base-folder-dialogs";

type FolderView = Schemas["ListedFolderView"];
type Props = { partner: string; base: string; name: string; isOpen: boolean };

function useFolder({ partner, base, name }: Props) {
  return useResource<FolderView | null>(
    (call) => {
      const read = async (cursor?: string) => {
        const params = { path: { partner, kb: base }, query: { q: name, ...(cursor !== undefined && { cursor }) } };
        const page = await ask(api.GET("/api/folder-list/{partner}/{kb}", { ...call, params }));
        return { entries: page.folders, next: page.next_cursor ?? null };
      };
      return findEntry(read, (folder) => folder.name === name);
    },
    [partner, base, name],
    { partner, kinds: ["folder", "document", "budget"], base },
  );
}

function Facts({ of }: { of: FolderView }) {
  return (
    <p class="facts">
      {of.deletion_requested_at && (
        <span class="state down">
          being deleted since <Time at={of.deletion_requested_at} />
        </span>
      )}
      <span>{counted(of.documents, "document")}</span>
      <StateWords of={of} />
      <span>{formatBytes(of.size_bytes)}</span>
      <span>{counted(of.tokens, "token")}</span>
      <span>
        spend <Spend spend={of.spend} />
      </span>
      <span>
        created <Time at={of.created_at} />
      </span>
    </p>
  );
}

/** The selected folder. The children are shown if it exists. */
export function Folder({ children, ...props }: Props & { children: ComponentChildren }) {
  const { partner, base, name, isOpen } = props;
  const folder = useFolder(props);
  const isDeleting = useSignal(false);
  return (
    <Shown of={folder}>
      {(found) =>
        found === null ? (
          <div class="notice" role="alert">
            <Icon name="triangle-alert" />
            <span>
              There is no folder <bdi>{name}</bdi>.
            </span>
            <button type="button" onClick={() => setQuery({ folder: null })}>
              All documents
            </button>
          </div>
        ) : (
          <>
            <div class="toolbar">
              <h2>
                <bdi>{name}</bdi>
              </h2>
              {isOpen && !found.deletion_requested_at && (
                <button type="button" onClick={() => (isDeleting.value = true)}>
                  <Icon name="trash-2" /> Delete the folder
                </button>
              )}
            </div>
            <Facts of={found} />
            {found.channel && (
              <ChannelPanel partner={partner} base={base} of={found} channel={found.channel} onChanged={() => void folder.reload()} />
            )}
            {children}
            {isDeleting.value && <DeleteFolder partner={partner} base={base} of={found} onClose={() => (isDeleting.value = false)} />}
          </>
        )
      }
    </Shown>
  );
}
