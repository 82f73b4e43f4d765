// How calls end: the time limit, the page that is closed, the server that stops, and who is told.

import assert from "node:assert/strict";

import { scene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const completed = (stage) =>
  until("the call is completed", async () => {
    const status = await stage.backend.status(stage.callId);
    return status.data.state === "completed" && status;
  });

const hangUps = ({ callbacks }) => callbacks.filter(({ name }) => name === "onHangUp").length;

/** Waits until a call has ended by itself, and checks that it lasted as long as it may. */
async function lasts({ page }, seconds) {
  const ended = await page.ended((seconds + 10) * 1000);
  const at = Object.fromEntries(ended.callbacks.map(({ name, atMs }) => [name, atMs]));
  const lasted = (at.onHangUp - at.onConnected) / 1000;
  assert.ok(Math.abs(lasted - seconds) <= 1, `the call lasted ${lasted} s instead of ${seconds} s`);
  return ended;
}

scene("the time limit ends a call within a second of it", { timeLimitSeconds: 4 }, async (stage) => {
  await stage.page.call();
  const page = await lasts(stage, 4);
  assert.equal(hangUps(page), 1);
  assert.equal(page.state, "completed");
  assert.equal(page.error, null);
  await completed(stage);
});

scene("a call without a server has the time limit of the settings", {}, async (stage) => {
  const { page } = stage;
  await page.openSettings();
  await page.select("timeLimit", 10);
  await page.call({ mode: "client" });
  const { state, error } = await lasts(stage, 10);
  assert.equal(state, "completed");
  assert.equal(error, null);
});

scene("the webhook delivers what the status says", { webhook: true, character: "greeter" }, async (stage) => {
  await stage.page.call();
  await stage.page.says("bot", "its greeting");
  await stage.page.click("hang-up");
  await stage.page.ended();
  const [{ event, headers }] = await until("the webhook", () => stage.deliveries.length > 0 && stage.deliveries);
  assert.deepEqual(event, await completed(stage));
  assert.match(headers["content-type"], /^application\/json/);
  assert.equal(stage.deliveries.length, 1);
});

scene("a page that is closed ends its call", {}, async (stage) => {
  await stage.page.call();
  await stage.browser.driver.get("about:blank");
  // The page says goodbye; without that it would take half a minute.
  await completed(stage);
});

scene("a backend that shuts down ends the call properly", { backend: {} }, async (stage) => {
  await stage.page.call();
  const stopped = stage.backend.program.stop("SIGTERM", 10_000);
  const page = await stage.page.ended();
  assert.equal(hangUps(page), 1);
  assert.equal(page.state, "completed");
  assert.equal(page.error, null);
  assert.deepEqual(await stopped, { code: 0, signal: null });
});
