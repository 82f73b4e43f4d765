// The system in the console: nodes, queues, models, settings, for administrators only.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

/** Opens the console, signed in with a key. */
async function signedIn({ backend, browser }, key, rest) {
  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open(rest);
  await page.signIn(key);
  return page;
}

/** Uploads a document that the budget of its base has no room for. Returns the partner. */
async function block({ backend, browserName }) {
  const partner = `waiting-${browserName}-${Date.now()}`;
  const form = (fields) => {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.append(name, value);
    return data;
  };
  await backend.admin("POST", `/api/partners/${partner}`, {});
  await backend.admin("POST", `/api/knowledgebases/${partner}`, form({ name: "museum" }));
  await backend.admin("PATCH", `/api/knowledgebases/${partner}/museum/limits`, { character_limit: 10 });
  await backend.admin("POST", `/api/folders/${partner}/museum`, form({ name: "texts" }));
  const file = new File(["The hall is open from ten to six.\n"], "hall.md", { type: "text/markdown" });
  const made = await backend.admin("POST", `/api/documents/${partner}/museum`, form({ type: "file", folder: "texts", file }));
  assert.equal(made.status, 201);
  await until("the document waits", async () => {
    const { waiting } = (await backend.admin("GET", "/api/system/queues")).content;
    return waiting.some((work) => work.partner === partner && work.reason === "budget");
  });
  return partner;
}

const rows = (page) => page.driver.executeScript(() => document.querySelectorAll("main table tbody tr").length);

consoleScene("an administrator looks at nodes, queues, models and settings", { once: true }, async (stage) => {
  const page = await signedIn(stage, stage.backend.adminKey);
  await page.click("System");
  await page.says("this node");
  await page.says("SQLite, schema");
  await accessible(page, "nodes", null);
  await page.click("Queues");
  await page.says("Embed documents");
  const partner = await block(stage);
  await page.click("Read again");
  await page.says(partner);
  await page.says("The budget of the base has no room.");
  await page.says("Next due");
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
  // Tabs are used with the keyboard. What waits leads to its base.
  await page.click("Queues");
  await page.press("Queues", Key.ARROW_LEFT);
  await page.says("this node");
  await page.press("Nodes", Key.ARROW_RIGHT);
  await page.says(partner);
  await page.driver.executeScript((partner) => [...document.querySelectorAll("main tr")].find((row) => row.innerText.includes(partner)).querySelector("a").click(), partner);
  await page.says("Knowledge base museum");
  await page.says("hall.md");
  assert.ok((await page.driver.getCurrentUrl()).includes(`/p/${partner}/knowledge/museum`));
  assert.deepEqual(await page.violations(), []);
});

consoleScene("the system on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const page = await signedIn(stage, stage.backend.adminKey, "system");
  for (const [tab, words] of [["Nodes", "this node"], ["Queues", "Embed documents"], ["Models", "builtin/extractive"], ["Settings", "http.listen"]]) {
    await page.click(tab);
    await page.says(words);
    assert.ok(await page.driver.executeScript("return document.documentElement.scrollWidth <= innerWidth"), `${tab} scrolls sideways`);
    await accessible(page, `${tab} on a phone`, null);
  }
});

consoleScene("a partner does not see the system", { once: true }, async (stage) => {
  const { content } = await stage.backend.admin("POST", `/api/partners/system-${stage.browserName}-${Date.now()}`, {});
  const page = await signedIn(stage, content.api_key);
  await page.says("Overview");
  assert.ok(!(await page.text()).includes("System"));
  for (const path of ["", "/nodes", "/queues", "/models", "/settings"]) assert.equal(await page.ask("GET", `/api/system${path}`), 403);
});
