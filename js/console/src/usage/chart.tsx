// Usage by day as stacked bars. The table below the chart has the same figures.

import { useSignal } from "@preact/signals";
import uPlot from "uplot";

import { type Colours, PLOT_FONT, PLOT_HEIGHT, usePlot } from "../ui/plot";
import { type Measure, MEASURE_NAMES, formatAmount, formatShort } from "./measures";
import { type Chart, stacked } from "./series";

/** Least width of a day, in pixels, whose bars have gaps. */
const MIN_GAP_PX = 6;
/** Width of the labels of the vertical axis. */
const AXIS_PX = 64;
/** Days between labels. */
const STEPS = [1, 2, 7, 14, 28, 56, 91];

const shortDay = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
const longDay = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeZone: "UTC" });

function options(chart: Chart, measure: Measure, colours: Colours, width: number, onPoint: (place: number | null) => void): uPlot.Options {
  const { days, series } = chart;
  const axis = { stroke: colours.text, font: PLOT_FONT, ticks: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [0.8, 48] });
  const gap = (width - AXIS_PX) / days.length < MIN_GAP_PX ? 0 : 1;
  return {
    width,
    height: PLOT_HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: () => [-0.5, days.length - 0.5] },
      // Without usage, the axis still has a height.
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        incrs: STEPS,
        space: 56,
        grid: { show: false },
        values: (_, places) => places.map((place) => (days[place] ? shortDay.format(new Date(days[place])) : "")),
      },
      {
        ...axis,
        size: AXIS_PX,
        grid: { stroke: colours.line, width: 1 },
        values: (_, amounts) => amounts.map((amount) => formatShort(measure, amount)),
      },
    ],
    // The tallest bars come first, and the others stand before them.
    series: [
      {},
      ...series.map((_, place) => {
        const fill = colours.series[series.length - 1 - place] ?? colours.text;
        return { fill, stroke: colours.ground, width: gap, points: { show: false }, ...(bars && { paths: bars }) };
      }),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

/** Amounts of the day that the pointer is on, or of all days. */
function Caption({ of: { days, series }, at, measure }: { of: Chart; at: number | null; measure: Measure }) {
  const day = at === null ? undefined : days[at];
  const sum = (values: readonly number[]) => (at === null ? values.reduce((all, value) => all + value, 0) : (values[at] ?? 0));
  return (
    <ul class="legend">
      <li>{day ? longDay.format(new Date(day)) : MEASURE_NAMES[measure]}</li>
      {series.map(({ label, values }, place) => (
        <li key={place}>
          <span class={`swatch series-${place + 1}`} />
          {label && <span dir="auto">{label}</span>} <strong>{formatAmount(measure, sum(values))}</strong>
        </li>
      ))}
    </ul>
  );
}

export function UsageChart({ of: chart, measure }: { of: Chart; measure: Measure }) {
  const at = useSignal<number | null>(null);
  const { days, series } = chart;
  const { root, area } = usePlot(
    (colours, width) => ({
      options: options(chart, measure, colours, width, (place) => (at.value = place)),
      data: [days.map((_, place) => place), ...stacked(series).reverse()],
    }),
    [JSON.stringify(chart), measure],
    () => (at.value = null),
  );
  return (
    <div ref={root} class="usage-chart">
      <div ref={area} class="plot" role="img" aria-label={`Chart: ${MEASURE_NAMES[measure]} by day. The table below has the figures.`} />
      <Caption of={chart} at={at.value} measure={measure} />
    </div>
  );
}
