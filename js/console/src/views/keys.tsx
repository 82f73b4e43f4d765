// The keys of a partner.

import { useSignal } from "@preact/signals";

import { api } from "../api";
import { nameOf } from "../calls/names";
import { type Key, SCOPE_NAMES } from "../keys";
import { ask, askPage } from "../problem";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { Icon } from "../ui/icon";
import { usePages } from "../ui/resource";
import { RowAction } from "../ui/row-action";
import { Empty, More, Shown, Table } from "../ui/states";
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

function Row({ of, onRevoke }: { of: Key; onRevoke: () => void }) {
  return (
    <tr class={of.revoked_at ? "over" : ""}>
      <th scope="row">{of.name || <code>{nameOf(of)}</code>}</th>
      <td>{of.kind}</td>
      <td>{of.allowed_origins?.join(", ") ?? of.scopes?.map((scope) => SCOPE_NAMES[scope]).join(", ") ?? "everything"}</td>
      <td>
        <Time at={of.created_at} />
      </td>
      <td>
        <Time at={of.last_used_at} />
      </td>
      <td>
        {of.revoked_at ? (
          <>
            revoked <Time at={of.revoked_at} />
          </>
        ) : (
          <Time at={of.expires_at} />
        )}
      </td>
      <td>
        {!of.revoked_at && <RowAction icon="trash-2" label={`Revoke ${nameOf(of)}`} onClick={onRevoke} />}
      </td>
    </tr>
  );
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
      <Shown of={keys}>
        {({ entries, next }) => (
          <>
            <div class="actions">
              <button type="button" class="primary" onClick={() => (isCreating.value = true)}>
                <Icon name="plus" /> Create a key
              </button>
            </div>
            {entries.length === 0 ? (
              <Empty icon="key-round" title="No keys yet">
                <p>Create a key to use the API.</p>
              </Empty>
            ) : (
              <Table label="Keys">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Kind</th>
                    <th scope="col">Allowed for</th>
                    <th scope="col">Created</th>
                    <th scope="col">Last used</th>
                    <th scope="col">Expires</th>
                    <th scope="col">
                      <span class="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((key) => (
                    <Row key={key.id} of={key} onRevoke={() => (revoking.value = key)} />
                  ))}
                </tbody>
              </Table>
            )}
            <More next={next} isLoading={keys.isLoading.value} more={keys.more} />
          </>
        )}
      </Shown>
      {isCreating.value && <NewKey partner={partner} onCreated={reload} onClose={() => (isCreating.value = false)} />}
      {revoking.value && <Revoke partner={partner} revoked={revoking.value} onRevoked={reload} onClose={() => (revoking.value = null)} />}
    </>
  );
}
