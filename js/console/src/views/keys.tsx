// The keys of a partner.

import { useSignal } from "@preact/signals";

import { api } from "../api";
import { nameOf } from "../calls/names";
import { type Key, SCOPE_NAMES } from "../keys";
import { ask, askPage } from "../problem";
import { Dialog } from "../ui/dialog";
import { Expiry } from "../ui/expiry";
import { Form } from "../ui/form";
import { Icon } from "../ui/icon";
import { type Column, List } from "../ui/list";
import { usePages } from "../ui/resource";
import { RowAction } from "../ui/row-action";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";
import { NewKey } from "./key-form";

type RevokeProps = { partner: string; revoked: Key; onRevoked: () => void; onClose: () => void };

function Revoke({ partner, revoked, onRevoked, onClose }: RevokeProps) {
  const revoke = async () => {
    await ask(api.DELETE("/api/keys/{partner}/{key_id}", { params: { path: { partner, key_id: revoked.id } } }));
    onClose();
    notify(`The key ${nameOf(revoked)} is revoked`);
    onRevoked();
  };
  return (
    <Dialog title={`Revoke the key ${nameOf(revoked)}?`} onClose={onClose}>
      <p>Requests with this key are refused from now on. Revoking cannot be undone.</p>
      <Form action="Revoke" busy="Revoking…" isDanger onSend={revoke} onCancel={onClose} />
    </Dialog>
  );
}

function columnsOf(onRevoke: (key: Key) => void): Column<Key>[] {
  return [
    { title: "Name", cell: (key) => key.name || <code>{nameOf(key)}</code> },
    { title: "Kind", cell: ({ kind }) => kind },
    {
      title: "Allowed for",
      cell: ({ allowed_origins: origins, scopes }) => origins?.join(", ") ?? scopes?.map((scope) => SCOPE_NAMES[scope]).join(", ") ?? "everything",
    },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
    { title: "Last used", cell: ({ last_used_at: at }) => <Time at={at} /> },
    { title: "Expires", cell: (key) => <Expiry of={key} /> },
    {
      title: "Actions",
      isHidden: true,
      cell: (key) => !key.revoked_at && <RowAction icon="trash-2" label={`Revoke ${nameOf(key)}`} onClick={() => onRevoke(key)} />,
    },
  ];
}

export function Keys({ partner }: { partner: string }) {
  const keys = usePages(
    (call, cursor) =>
      askPage(api.GET("/api/keys/{partner}", { ...call, params: { path: { partner }, query: { ...(cursor !== undefined && { cursor }) } } })),
    [partner],
    { partner, kinds: ["key"] },
  );
  const isCreating = useSignal(false);
  const revoking = useSignal<Key | null>(null);
  const reload = () => void keys.reload();
  return (
    <>
      <div class="actions">
        <button type="button" class="primary" onClick={() => (isCreating.value = true)}>
          <Icon name="plus" /> Create a key
        </button>
      </div>
      <List
        of={keys}
        label="Keys"
        columns={columnsOf((key) => (revoking.value = key))}
        keyOf={({ id }) => id}
        isOver={({ revoked_at: at }) => Boolean(at)}
      >
        <Empty icon="key-round" title="No keys yet">
          <p>Create a key to use the API.</p>
        </Empty>
      </List>
      {isCreating.value && <NewKey partner={partner} onCreated={reload} onClose={() => (isCreating.value = false)} />}
      {revoking.value && <Revoke partner={partner} revoked={revoking.value} onRevoked={reload} onClose={() => (revoking.value = null)} />}
    </>
  );
}
