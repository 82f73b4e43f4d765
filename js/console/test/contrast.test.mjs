// The colours of both themes have the contrast that WCAG 2.2 asks for at level AA.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const css = readFileSync(path.join(import.meta.dirname, "../src/styles/tokens.css"), "utf8");
const themes = [0, 1].map((place) => {
  const tokens = [...css.matchAll(/--([\w-]+): (?:light-dark\((#\w+), (#\w+)\)|(#\w+));/g)];
  return Object.fromEntries(tokens.map(([, name, light, dark, both]) => [name, both ?? [light, dark][place]]));
});

function luminance(colour) {
  const digits = colour.slice(1);
  const hex = digits.length === 3 ? [...digits].map((digit) => digit + digit) : digits.match(/../g);
  const [red, green, blue] = hex.map((pair) => {
    const value = Number.parseInt(pair, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const GROUNDS = ["ground", "raised"];
const TEXT = [
  ...["text", "dim", "accent", "bad"].flatMap((text) => GROUNDS.map((ground) => [text, ground])),
  ...["accent-ground", "bad-ground", "warn-ground", "good-ground"].map((ground) => ["text", ground]),
  ["on-accent", "accent-fill"],
  ["on-accent", "bad-fill"],
];
const CHART = [1, 2, 3, 4, 5, 6].map((place) => `chart-${place}`);
/** Borders of fields, the outline of what has the focus, and the parts of bars and charts. */
const SHAPES = ["edge", "accent", "sparse", "bm25", ...CHART].flatMap((shape) => GROUNDS.map((ground) => [shape, ground]));

for (const [place, theme] of themes.entries()) {
  test(`contrast of the ${["light", "dark"][place]} theme`, () => {
    for (const [pairs, least] of [[TEXT, 4.5], [SHAPES, 3]]) {
      for (const [one, other] of pairs) {
        const found = contrast(theme[one], theme[other]);
        assert.ok(found >= least, `${one} on ${other}: ${found.toFixed(2)}`);
      }
    }
  });
}
