// The system in the console: nodes, queues, models, settings, for administrators only.

import assert from "node:assert/strict";

import { accessible } from "./stage/axe.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { scene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

/** Opens the console, signed in with a key. */
async function signedIn({ backend, browser }, key, rest) {
  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open(rest);
  await page.signIn(key);
  return page;
}

const rows = (page) => page.driver.executeScript(() => document.querySelectorAll("main table tbody tr").length);

scene("an administrator looks at nodes, queues, models and settings", {}, async (stage) => {
  const page = await signedIn(stage, stage.backend.adminKey);
  await page.click("System");
  await page.says("this node");
  await page.says("SQLite, schema");
  await accessible(page, "nodes", null);
  await page.click("Queues");
  await page.says("Embed documents");
  await page.says("Nothing waits for a budget");
  await accessible(page, "queues", null);
  await page.click("Models");
  await page.says("builtin/extractive");
  await page.says("Equipment of the machine");
  await accessible(page, "models", null);
  await page.click("Settings");
  await page.says("COLLOQUY_ADMIN_KEY");
  const text = await page.text();
  assert.ok(!text.includes(stage.backend.adminKey), "the key is shown");
  await accessible(page, "settings", null);
  const all = await rows(page);
  await page.enter("text", "http.listen");
  await until("the filter leaves one setting", async () => (await rows(page)) === 1);
  assert.ok((await page.driver.getCurrentUrl()).includes("text=http.listen"));
  await page.enter("text", "");
  await page.driver.executeScript(() => document.querySelector('input[name="changed"]').click());
  await until("the filter leaves changed settings", async () => {
    const left = await rows(page);
    return left > 0 && left < all;
  });
  assert.deepEqual(await page.violations(), []);
});

scene("a partner does not see the system", {}, async (stage) => {
  const { content } = await stage.backend.admin("POST", `/api/partners/system-${stage.browserName}`, {});
  const page = await signedIn(stage, content.api_key);
  await page.says("Overview");
  assert.ok(!(await page.text()).includes("System"));
  for (const path of ["", "/nodes", "/queues", "/models", "/settings"]) assert.equal(await page.ask("GET", `/api/system${path}`), 403);
});
