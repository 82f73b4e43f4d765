// All partners, for administrators.

import { api } from "../api";
import { askPage } from "../problem";
import { Link } from "../router";
import { formatBytes } from "../ui/format";
import { usePages } from "../ui/resource";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

export function Partners(_: { partner: string }) {
  const partners = usePages(
    (call, cursor) => askPage(api.GET("/api/partners", { ...call, params: { query: { ...(cursor !== undefined && { cursor }) } } })),
    [],
  );
  return (
    <Shown of={partners}>
      {({ entries, next }) =>
        entries.length === 0 ? (
          <Empty icon="building-2" title="No partners yet">
            <p>
              <code>colloquy partner create acme</code> creates one and prints its first key.
            </p>
          </Empty>
        ) : (
          <>
            <Table label="Partners">
              <thead>
                <tr>
                  <th scope="col">Partner</th>
                  <th scope="col">Name</th>
                  <th scope="col">Storage</th>
                  <th scope="col">Created</th>
                </tr>
              </thead>
              <tbody>
                {entries.map((partner) => (
                  <tr key={partner.id}>
                    <th scope="row">
                      <Link to={`/p/${encodeURIComponent(partner.id)}/keys`}>{partner.id}</Link>
                    </th>
                    <td>{partner.display_name}</td>
                    <td>
                      {formatBytes(partner.storage.used_bytes)} of {formatBytes(partner.storage.limit_bytes)}
                    </td>
                    <td>
                      <Time at={partner.created_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
            <More next={next} isLoading={partners.isLoading.value} more={partners.more} />
          </>
        )
      }
    </Shown>
  );
}
