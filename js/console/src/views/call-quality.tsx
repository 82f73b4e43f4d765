// The quality of a call's connection over its time.

import { useSignal } from "@preact/signals";

import { api } from "../api";
import { CHARTS, type ChartName, FIGURES, type QualityPoint } from "../calls/quality";
import { ask } from "../problem";
import { Explained } from "../ui/explained";
import { formatDuration } from "../ui/format";
import { useKept } from "../ui/kept";
import { lazy } from "../ui/lazy";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";

const QualityChart = lazy<{ points: readonly QualityPoint[]; name: ChartName }>(async () => (await import("../calls/quality-chart")).QualityChart);

const NAMES = Object.keys(CHARTS) as ChartName[];

function Figures({ points }: { points: readonly QualityPoint[] }) {
  return (
    <details>
      <summary>Figures</summary>
      <Table label="Quality of the connection">
        <thead>
          <tr>
            <th scope="col">Up to</th>
            {FIGURES.map(({ name, meaning }) => (
              <th key={name} scope="col" class="number">
                <Explained as={meaning}>{name}</Explained>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.map((point) => (
            <tr key={point.at_ms}>
              <th scope="row" class="day">
                {formatDuration(point.at_ms / 1_000)}
              </th>
              {FIGURES.map(({ name, of, format }) => {
                const value = of(point);
                return (
                  <td key={name} class="number">
                    {value === null ? <span class="none">n/a</span> : format(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </Table>
    </details>
  );
}

/** A chart and a table. Those of a call that runs grow with it. */
export function CallQuality({ partner, id, isOver }: { partner: string; id: string; isOver: boolean }) {
  const quality = useKept(useResource(
    (call) => ask(api.GET("/v2/calls/{call_id}/quality", { ...call, params: { path: { call_id: id } } })),
    [id, isOver],
    { partner, kinds: ["call_quality"], id },
  ));
  const name = useSignal<ChartName>("times");
  return (
    <Shown of={quality}>
      {({ data: { points, is_open: isOpen } }) =>
        points.length === 0 ? (
          <p class="none">{isOpen ? "Nothing was measured yet." : "Nothing was measured: media flowed for less than two seconds, or not at all."}</p>
        ) : (
          <>
            <div class="choices" role="group" aria-label="Chart">
              {NAMES.map((one) => (
                <label key={one} class="inline">
                  <input type="radio" name="quality-chart" checked={name.value === one} onChange={() => (name.value = one)} />
                  {CHARTS[one].title}
                </label>
              ))}
            </div>
            <QualityChart points={points} name={name.value} />
            <Figures points={points} />
          </>
        )
      }
    </Shown>
  );
}
