// The quality of a call over its time as lines. The table below the chart has the same figures.

import { useSignal } from "@preact/signals";
import uPlot from "uplot";

import { formatDuration } from "../ui/format";
import { type Colours, PLOT_FONT, PLOT_HEIGHT, usePlot } from "../ui/plot";
import { CHARTS, type ChartName, type Figure, type QualityPoint, columns, worst } from "./quality";

/** Width of the labels of the vertical axis. */
const AXIS_PX = 64;
/** Seconds between labels. */
const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600];

function options(figures: readonly Figure[], colours: Colours, width: number, onPoint: (place: number | null) => void): uPlot.Options {
  const axis = { stroke: colours.text, font: PLOT_FONT, ticks: { show: false } };
  const [first] = figures;
  return {
    width,
    height: PLOT_HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, space: 56, incrs: STEPS, grid: { show: false }, values: (_, seconds) => seconds.map(formatDuration) },
      { ...axis, size: AXIS_PX, grid: { stroke: colours.line, width: 1 }, values: (_, values) => values.map((value) => first?.format(value) ?? "") },
    ],
    series: [{}, ...figures.map((_, place) => ({ stroke: colours.series[place] ?? colours.text, width: 2, spanGaps: false }))],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

export function QualityChart({ points, name }: { points: readonly QualityPoint[]; name: ChartName }) {
  const at = useSignal<number | null>(null);
  const { title, figures } = CHARTS[name];
  const [times, ...values] = columns(points, figures);
  const { root, area } = usePlot(
    (colours, width) => ({ options: options(figures, colours, width, (place) => (at.value = place)), data: [times, ...values] }),
    [JSON.stringify(points), name],
    () => (at.value = null),
  );
  const place = at.value;
  const moment = place === null ? undefined : times[place];
  return (
    <div ref={root} class="usage-chart">
      <div ref={area} class="plot" role="img" aria-label={`Chart: ${title} over the time of the call. The table below has the figures.`} />
      <ul class="legend">
        <li>{moment === undefined ? "Worst of the call" : `At ${formatDuration(moment)}`}</li>
        {figures.map((figure, series) => {
          const value = place === null ? worst(points, figure) : (values[series]?.[place] ?? null);
          return (
            <li key={figure.name}>
              <span class={`swatch series-${series + 1}`} /> {figure.name} <strong>{value === null ? "n/a" : figure.format(value)}</strong>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
