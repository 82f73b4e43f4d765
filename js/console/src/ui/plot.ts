// Plots of uPlot that follow the theme and the width of the page.

import { type RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { theme } from "./theme";

export const PLOT_FONT = "12px system-ui, sans-serif";
export const PLOT_HEIGHT = 240;

export type Colours = { text: string; line: string; ground: string; series: string[] };

/** Reads the colours of the theme from the elements that have them: the root, and the swatches of its legend. */
function coloursOf(root: HTMLElement): Colours {
  const { color, borderTopColor, backgroundColor } = getComputedStyle(root);
  const series = [...root.querySelectorAll(".swatch")].map((swatch) => getComputedStyle(swatch).backgroundColor);
  return { text: color, line: borderTopColor, ground: backgroundColor, series };
}

type Make = (colours: Colours, width: number) => { options: uPlot.Options; data: uPlot.AlignedData };
type Plot = Record<"root" | "area", RefObject<HTMLDivElement | null>>;

/** Draws a plot into an area. `on` lists the values that it depends on, `gone` runs before it is drawn for others. */
export function usePlot(make: Make, on: readonly unknown[], gone: () => void): Plot {
  const root = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [outer, inner] = [root.current, area.current];
    if (!outer || !inner) return;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const { options, data } = make(coloursOf(outer), inner.clientWidth);
      plot = new uPlot(options, data, inner);
    };
    draw();
    const resized = new ResizeObserver(() => plot?.setSize({ width: inner.clientWidth, height: PLOT_HEIGHT }));
    resized.observe(inner);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", draw);
      plot?.destroy();
      gone();
    };
  }, [...on, theme.value]);
  return { root, area };
}
