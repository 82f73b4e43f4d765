// How calls end: the time limit, the page that is closed, the server that stops, and who is told.

import assert from "node:assert/strict";

import { PARTNER } from "./stage/backend.mjs";
import { scene } from "./stage/stage.mjs";
import { SLOWNESS, until } from "./stage/waiting.mjs";

const completed = (stage) =>
  until("the call is completed", async () => {
    const status = await stage.backend.status(stage.callId);
    return status.data.state === "completed" && status;
  });

const hangUps = ({ callbacks }) => callbacks.filter(({ name }) => name === "onHangUp").length;

/**
 * Checks that a call lasted as long as it may, by the server's clock, within a second on a machine of ordinary speed: what a page that waits
 * for the processor is told comes late. No page sees it end early.
 */
function lasted({ state, duration }, { callbacks }, seconds) {
  assert.equal(state, "completed");
  const server = duration.call_seconds;
  assert.ok(server >= seconds - 1 && server <= seconds + SLOWNESS, `the call lasted ${server} s instead of ${seconds} s`);
  const at = Object.fromEntries(callbacks.map(({ name, atMs }) => [name, atMs]));
  const page = (at.onHangUp - at.onConnected) / 1000;
  assert.ok(page > seconds - 1, `to the page the call lasted ${page} s instead of ${seconds} s`);
}

scene("the time limit ends a call within a second of it", { timeLimitSeconds: 4 }, async (stage) => {
  await stage.page.call();
  const page = await stage.page.ended();
  assert.equal(hangUps(page), 1);
  assert.equal(page.state, "completed");
  assert.equal(page.error, null);
  lasted((await completed(stage)).data, page, 4);
});

scene("a call without a server has the time limit of the settings", { waits: true, character: "limited" }, async (stage) => {
  const { page, backend } = stage;
  const begun = new Date().toISOString();
  await page.openSettings();
  await page.select("timeLimit", 10);
  await page.call({ mode: "client" });
  const ended = await page.ended(30_000);
  assert.equal(ended.state, "completed");
  assert.equal(ended.error, null);
  // No server of the page knows the call's id. In the other browser this scene may be played at the same time.
  const query = `character=${PARTNER}/limited&state=completed&created_from=${begun}`;
  const { data } = (await backend.api("GET", `/v2/calls?${query}`)).content;
  assert.ok(data.length > 0);
  for (const call of data) lasted(call, ended, 10);
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
