// What axe-core finds in a page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { until } from "./waiting.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const SERIOUS = ["serious", "critical"];

/** The checks whose result depends on colours, and so on the scheme. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** Fails if axe-core reports a violation of one of `impacts`, or of any if null, in light or in dark. */
export async function accessible({ browser, driver }, state, impacts = SERIOUS) {
  if (!(await driver.executeScript("return 'axe' in window"))) await driver.executeScript(AXE);
  for (const scheme of ["dark", "light"]) {
    await browser.prefer(scheme);
    // Firefox tells its pages of a setting some time after it was made.
    await until(`the page is ${scheme}`, () => driver.executeScript(`return matchMedia("(prefers-color-scheme: ${scheme})").matches`));
    const options = { resultTypes: ["violations"], ...(scheme === "light" && { runOnly: { type: "rule", values: OF_COLOURS } }) };
    const violations = await driver.executeAsyncScript(`
      const done = arguments[arguments.length - 1];
      window.axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => done(violations), (error) => done([{ impact: "critical", id: String(error), nodes: [] }]));
    `);
    const bad = violations
      .filter(({ impact }) => impacts === null || impacts.includes(impact))
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    assert.deepEqual(bad, [], `${state}, ${scheme}: axe finds something`);
  }
}
