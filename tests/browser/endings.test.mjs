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

scene("the time limit ends a call within a second of it", { timeLimitSeconds: 4 }, async (stage) => {
  await stage.page.call();
  const page = await stage.page.ended();
  const at = Object.fromEntries(page.callbacks.map(({ name, atMs }) => [name, atMs]));
  const lasted = (at.onHangUp - at.onConnected) / 1000;
  assert.ok(Math.abs(lasted - 4) <= 1, `the call lasted ${lasted} s instead of 4 s`);
  assert.equal(hangUps(page), 1);
  assert.equal(page.state, "completed");
  assert.equal(page.error, null);
  await completed(stage);
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
