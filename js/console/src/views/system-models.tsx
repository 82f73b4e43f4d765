// The models and services of the node that answers.

import { type Schemas, api } from "../api";
import { ask } from "../problem";
import { FAILURES, PROVIDERS, PURPOSES, REACH, TONES, UNITS } from "../system/words";
import { formatBytes, formatDuration, formatNumber, formatUsd } from "../ui/format";
import { AsOf, useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

type Model = Schemas["SystemModel"];
type Reach = Schemas["ModelReach"];

function Reachability({ of }: { of: Reach | null | undefined }) {
  if (!of) return <span class="none">not noted</span>;
  const { state, resting_ms, resting_partners, answered_at, failed_at, failure } = of;
  return (
    <>
      <span class={`state ${TONES[state] ?? ""}`}>{REACH[state] ?? state}</span>
      {typeof resting_ms === "number" && <span class="hint"> for {formatDuration(resting_ms / 1_000)}</span>}
      {resting_partners > 0 && <div class="hint">rests for {formatNumber(resting_partners)} of the partners</div>}
      {answered_at && (
        <div class="hint">
          answered <Time at={answered_at} />
        </div>
      )}
      {failed_at && (
        <div class="hint">
          failed <Time at={failed_at} />: {FAILURES[failure ?? ""] ?? failure}
        </div>
      )}
    </>
  );
}

function Prices({ of: { prices, provider } }: { of: Model }) {
  if (prices.length > 0) {
    return (
      <>
        {prices.map(({ unit, usd }) => (
          <div key={unit}>
            {formatUsd(usd)} <span class="hint">{UNITS[unit]}</span>
          </div>
        ))}
      </>
    );
  }
  return provider === "service" ? <span class="none">unknown</span> : <>—</>;
}

function Row({ of }: { of: Model }) {
  const { purpose, name, used_for, provider, api: kind, host, memory_bytes, reach } = of;
  return (
    <tr>
      <th scope="row">
        <code>{name}</code>
        {used_for.length > 0 && <div class="hint">also for {used_for.join(", ")}</div>}
      </th>
      <td>{PURPOSES[purpose]}</td>
      <td>
        {host ?? PROVIDERS[provider] ?? provider}
        {kind && <div class="hint">API: {kind}</div>}
        {typeof memory_bytes === "number" && <div class="hint">{formatBytes(memory_bytes)} of memory</div>}
      </td>
      <td>
        <Reachability of={reach} />
      </td>
      <td>
        <Prices of={of} />
      </td>
    </tr>
  );
}

function Equipment({ of }: { of: Schemas["Equipment"][] | null | undefined }) {
  if (!of) return <p>The server has not looked yet. Read again in a moment.</p>;
  if (of.length === 0) return <p>Nothing is missing.</p>;
  return (
    <ul class="equipment">
      {of.map(({ state, text }) => (
        <li key={text}>
          <span class={`state ${TONES[state] ?? ""}`}>{state}</span> {text}
        </li>
      ))}
    </ul>
  );
}

export function Models() {
  const models = useRecent(useResource((call) => ask(api.GET("/api/system/models", call)), []));
  return (
    <Shown of={models}>
      {({ answered_by, at, models: listed, equipment, memory }) => (
        <>
          <AsOf at={at} node={answered_by.name} of={models} />
          <Table label="Models">
            <thead>
              <tr>
                <th scope="col">Model</th>
                <th scope="col">For</th>
                <th scope="col">Where</th>
                <th scope="col">Requests of this node</th>
                <th scope="col">Price</th>
              </tr>
            </thead>
            <tbody>
              {listed.map((model) => (
                <Row key={`${model.purpose} ${model.name}`} of={model} />
              ))}
            </tbody>
          </Table>
          <h2>Equipment of the machine</h2>
          <Equipment of={equipment} />
          {typeof memory.resident_bytes === "number" && <p>Memory of the server: {formatBytes(memory.resident_bytes)}</p>}
        </>
      )}
    </Shown>
  );
}
