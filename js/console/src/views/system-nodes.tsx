// The nodes of the installation.

import { type Schemas, api } from "../api";
import { ask } from "../problem";
import { NodeName } from "../system/node-name";
import { NODE_NOTES, NODE_STATES, TONES } from "../system/words";
import { Explained } from "../ui/explained";
import { formatNumber, formatSeconds } from "../ui/format";
import { Icon } from "../ui/icon";
import { AsOf, useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

type Node = Schemas["SystemNode"];

function State({ of: state }: { of: string }) {
  const label = <span class={`state ${TONES[state] ?? ""}`}>{NODE_STATES[state] ?? state}</span>;
  const note = NODE_NOTES[state];
  return note ? <Explained as={note}>{label}</Explained> : label;
}

function Row({ of }: { of: Node }) {
  const { id, name, is_answering, state, version, url, started_at, heartbeat_at, heartbeat_age_ms, calls, max_calls } = of;
  const seconds = heartbeat_age_ms / 1_000;
  return (
    <tr>
      <th scope="row">
        <NodeName>{name}</NodeName>
        {is_answering && <span class="hint"> this node</span>}
        <div class="hint">
          process <NodeName>{id}</NodeName>
        </div>
        {url && <div class="hint url">{url}</div>}
      </th>
      <td>
        <State of={state} />
      </td>
      <td>{version ?? <span class="none">unknown</span>}</td>
      <td class="number">
        {typeof calls === "number" ? formatNumber(calls) : "—"}
        {typeof max_calls === "number" && typeof calls === "number" && ` of ${formatNumber(max_calls)}`}
      </td>
      <td>{seconds < 60 ? `${formatSeconds(seconds)} ago` : <Time at={heartbeat_at} />}</td>
      <td>
        <Time at={started_at} />
      </td>
    </tr>
  );
}

export function Nodes() {
  const nodes = useRecent(useResource((call) => ask(api.GET("/api/system/nodes", call)), []));
  return (
    <Shown of={nodes}>
      {({ answered_by, at, nodes: listed, versions, has_more }) => (
        <>
          <AsOf at={at} node={answered_by.name} of={nodes} />
          {versions.length > 1 && (
            <div class="notice" role="status">
              <Icon name="triangle-alert" />
              <span>Nodes of several versions run: {versions.join(", ")}.</span>
            </div>
          )}
          <Table label="Nodes">
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">State</th>
                <th scope="col">Version</th>
                <th scope="col" class="number">
                  Calls
                </th>
                <th scope="col">Heartbeat</th>
                <th scope="col">Started</th>
              </tr>
            </thead>
            <tbody>
              {listed.map((node) => (
                <Row key={node.id} of={node} />
              ))}
            </tbody>
          </Table>
          {has_more && <p class="hint">Only the newest {formatNumber(listed.length)} are shown.</p>}
        </>
      )}
    </Shown>
  );
}
