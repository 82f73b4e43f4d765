// The characters of a partner, by name.

import { CHARACTER, NEW_CHARACTER, address } from "../addresses";
import { api } from "../api";
import { askPage } from "../problem";
import { Link, navigate } from "../router";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { usePages } from "../ui/resource";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

export function Characters({ partner }: { partner: string }) {
  const characters = usePages(
    (call, cursor) =>
      askPage(api.GET("/api/characters/{partner}", { ...call, params: { path: { partner }, query: { ...(cursor !== undefined && { cursor }) } } })),
    [partner],
    { partner, kinds: ["character"] },
  );
  const create = () => navigate(address(NEW_CHARACTER, { partner }));
  return (
    <Shown of={characters}>
      {({ entries, next }) =>
        entries.length === 0 ? (
          <Empty icon="user-round" title="No characters yet">
            <p>A character says who speaks: its personality, its voice, and what it knows.</p>
            <button type="button" class="primary" onClick={create}>
              Create a character
            </button>
          </Empty>
        ) : (
          <>
            <div class="actions">
              <button type="button" class="primary" onClick={create}>
                <Icon name="plus" /> Create a character
              </button>
            </div>
            <Table label="Characters">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col" class="number">
                    Version
                  </th>
                  <th scope="col">Changed</th>
                  <th scope="col">Created</th>
                </tr>
              </thead>
              <tbody>
                {entries.map(({ name, version, created_at, updated_at }) => (
                  <tr key={name}>
                    <th scope="row">
                      <Link to={address(CHARACTER, { partner, name })}>{name}</Link>
                    </th>
                    <td class="number">{formatNumber(version)}</td>
                    <td>
                      <Time at={updated_at} />
                    </td>
                    <td>
                      <Time at={created_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
            <More next={next} isLoading={characters.isLoading.value} more={characters.more} />
          </>
        )
      }
    </Shown>
  );
}
