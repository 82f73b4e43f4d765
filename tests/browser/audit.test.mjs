// The audit log in the console.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;

/** Returns the rows of the table, each with the texts of its cells. */
const rows = (page) =>
  page.driver.executeScript(() => [...document.querySelectorAll("main tbody tr")].map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

/** Waits until the table has the changes of these, newest first. */
async function lists(page, changes) {
  let found = [];
  const listed = async () => {
    found = (await rows(page)).map(([, who, what]) => [who.split("\n")[0], what.split("\n")[0]]);
    return JSON.stringify(found) === JSON.stringify(changes);
  };
  await until(`the log lists ${JSON.stringify(changes)}`, listed).catch((error) => {
    error.message += `\n\nIt lists ${JSON.stringify(found)}`;
    throw error;
  });
}

/** Sends a request of a customer's program. */
async function send({ backend }, key, method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${backend.url}${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await answer.text();
  return { status: answer.status, content: text === "" ? null : JSON.parse(text) };
}

consoleScene("what two keys change is in the audit log, and is filtered", { once: true }, async (stage) => {
  const { backend, browser, browserName } = stage;
  const partner = `audit-${browserName}`;
  const { content } = await backend.admin("POST", `/api/partners/${partner}`, {});
  const program = await send(stage, content.api_key, "POST", `/api/keys/${partner}`, { name: HOSTILE });
  assert.equal(program.status, 201);
  const { id, api_key: key } = program.content;
  const character = { name: "ada", personality: "You are Ada.", parameters: {} };
  assert.equal((await send(stage, key, "POST", `/api/characters/${partner}`, character)).status, 201);
  // What is refused is not listed.
  assert.equal((await send(stage, key, "POST", `/api/characters/${partner}`, character)).status, 409);

  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open();
  await page.signIn(content.api_key);
  await page.says("Overview");
  await page.click("Audit log");
  const all = [
    ["first key", "Signed in to the console"],
    [HOSTILE, "Created the character ada"],
    ["first key", `Created the key ${id.slice(-8)}`],
    ["an administrator", `Created the partner ${partner}`],
  ];
  await lists(page, all);
  await accessible(page, "the audit log", null);

  await page.choose("action", "Created the character");
  await lists(page, all.slice(1, 2));
  assert.match(await page.driver.getCurrentUrl(), /action=create_character/);
  await page.click("Show all");
  await lists(page, all);
  await page.click(HOSTILE);
  await lists(page, all.slice(1, 2));
  await page.driver.navigate().refresh();
  await lists(page, all.slice(1, 2));
  await page.click("Show all");
  await lists(page, all);
  const filterBy = async (text) => (await page.enter("subject", text), (await page.field("subject")).sendKeys(Key.ENTER));
  await filterBy(id);
  await lists(page, all.slice(2, 3));
  await filterBy("nothing");
  await page.says("No change matches");
  await accessible(page, "no change", null);
  await page.click("Show all");

  // A change of the page itself appears when the log is read again.
  await page.click("ada");
  await page.says("You are Ada.");
  await page.driver.navigate().back();
  assert.equal((await send(stage, key, "DELETE", `/api/keys/${partner}/${id}`)).status, 204);
  await page.click("Read again");
  await lists(page, [[HOSTILE, `Revoked the key ${id.slice(-8)}`], ...all]);
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
});

consoleScene("an administrator sees who deleted a partner, and a new partner of its name does not", { once: true }, async ({ backend, browser, browserName }) => {
  const partner = `audited-${browserName}`;
  await backend.admin("POST", `/api/partners/${partner}`, {});
  assert.equal((await backend.admin("DELETE", `/api/partners/${partner}`)).status, 204);
  const { content } = await backend.admin("POST", `/api/partners/${partner}`, {});
  const created = `Created the partner ${partner}`;

  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open();
  await page.signIn(backend.adminKey);
  await page.says("Overview");
  await page.click("Audit log of all");
  await page.choose("action", "Deleted the partner");
  await page.says(`Deleted the partner ${partner}`);
  await accessible(page, "the audit log of all", null);
  await page.click(partner);
  await lists(page, [created, `Deleted the partner ${partner}`, created].map((change) => ["configured key", change]));

  await page.forget();
  await page.open(`p/${partner}/audit`);
  await page.signIn(content.api_key);
  await lists(page, [["first key", "Signed in to the console"], ["an administrator", created]]);
});
