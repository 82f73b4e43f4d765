// What happens to an open console: its key is revoked, something is forbidden, the server restarts, the network is slow, and somebody else edits
// the same thing. Other conflicts of edits are in the scenes of documents and characters.

import assert from "node:assert/strict";

import { accessible } from "./stage/axe.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

/** Opens the console at a view of a new partner, signed in with a key of it. */
async function signedIn({ backend, browser, browserName, wire }, view) {
  const partner = `${view}-${browserName}-${Date.now()}`;
  await backend.admin("POST", `/api/partners/${partner}`, {});
  const key = await createKey(backend, partner, "of this tab");
  const page = new ConsolePage(browser, wire ? wire.url : backend.url);
  await page.forget();
  await page.open(`p/${partner}/${view}`);
  await page.signIn(key.api_key);
  return { page, partner, key };
}

async function createKey(backend, partner, name) {
  return (await backend.admin("POST", `/api/keys/${partner}`, { name })).content;
}

const uncaught = (page) => page.driver.executeScript("return window.uncaught");

consoleScene("a key that is revoked while the console is open ends its session, and another key begins anew", { once: true }, async (stage) => {
  const { page, partner, key } = await signedIn(stage, "keys");
  await page.click("Create a key");
  await page.enter("name", "never created");
  const other = await createKey(stage.backend, partner, "another one");
  await stage.backend.admin("DELETE", `/api/keys/${partner}/${key.id}`);
  await page.says("Your session has ended");
  await page.signIn(key.api_key);
  await page.says("This API key is not valid.");
  await accessible(page, "a revoked key", null);
  // Whoever it is sees nothing of what was typed.
  await page.signIn(other.api_key);
  await until("the page begins anew", async () => !(await page.driver.getCurrentUrl()).endsWith("/keys"));
  const heading = () => page.driver.executeScript("return document.querySelector('main h1')?.innerText");
  await until("the overview is there", async () => (await heading()) === "Overview");
  assert.equal(await page.driver.executeScript("return document.querySelectorAll('dialog[open]').length"), 0);
  const names = (await stage.backend.admin("GET", `/api/keys/${partner}`)).content.map(({ name }) => name);
  assert.ok(!names.includes("never created"), names);
});

consoleScene("what is forbidden midway is said where it was tried", { once: true }, async (stage) => {
  const { page, partner } = await signedIn(stage, "transcripts");
  await page.says("No transcripts yet");
  await page.click("Transcribe a recording");
  await page.driver.executeScript(() => document.querySelectorAll("dialog [name=kind]")[1].click());
  const address = `${stage.backend.url}/health`;
  await page.enter("audio_url", address);
  const allow = (transcription_enabled) => stage.backend.admin("PUT", `/api/partners/${partner}`, { settings: { transcription_enabled } });
  await allow(false);
  await page.click("Transcribe");
  await page.says("Transcription is switched off for this partner");
  await accessible(page, "something that is forbidden", null);
  assert.equal(await (await page.field("audio_url")).getAttribute("value"), address);
  await allow(true);
  await page.click("Transcribe");
  await page.says("What is at audio_url is no recording of a supported type.");
  assert.deepEqual(await uncaught(page), []);
  await stage.backend.admin("DELETE", `/api/partners/${partner}`);
  await page.click("Keys");
  await page.says("Your session has ended");
});

consoleScene("the console goes on after a restart of the server", { once: true, backend: {} }, async (stage) => {
  const { page, partner } = await signedIn(stage, "keys");
  await page.click("Create a key");
  await page.enter("name", "typed before");
  await stage.backend.program.stop();
  await page.click("Create the key");
  await page.says("The server cannot be reached.");
  await stage.backend.startAgain();
  await page.click("Create the key");
  await page.says("It is not shown again.");
  await page.click("Done");
  await page.says("typed before");
  // Changes are heard of again, without a click.
  await createKey(stage.backend, partner, "made after");
  await page.says("made after");
  await page.saysNoMore("No live updates");
  assert.ok(!(await page.text()).includes("Sign in"));
  assert.deepEqual(await uncaught(page), []);
});

consoleScene("a list over a slow network shows that it loads, asks once, and keeps what it has", { once: true, wire: true }, async (stage) => {
  const { page, partner } = await signedIn(stage, "characters");
  await page.says("No characters yet");
  for (const name of ["first", "second", "third"]) await createKey(stage.backend, partner, name);
  await page.driver.executeScript((path) => {
    const { fetch } = window;
    window.asked = 0;
    window.fetch = (resource, init) => {
      if (new URL(resource.url ?? resource, location.href).pathname === path) window.asked += 1;
      return fetch(resource, init);
    };
  }, `/api/keys/${partner}`);
  const asked = () => page.driver.executeScript("return window.asked");
  stage.wire.delay(800);
  await page.click("Keys");
  await page.says("Loading…");
  await until("the keys are asked for", async () => (await asked()) > 0);
  await page.click("Keys");
  assert.match(await page.text(), /Loading…/);
  await page.says("third");
  assert.match(await page.text(), /first[^]*second|second[^]*first/);
  await page.saysNoMore("Loading…");
  assert.equal(await asked(), 1);

  // While it is read again, the list stays.
  await createKey(stage.backend, partner, "fourth");
  await until("the keys are asked for again", async () => (await asked()) > 1);
  const meanwhile = await page.text();
  assert.match(meanwhile, /third/);
  assert.doesNotMatch(meanwhile, /fourth|Loading…/);
  await page.says("fourth");
  assert.equal(await asked(), 2);
  assert.deepEqual(await uncaught(page), []);
});

consoleScene("two operators who edit a quota change only what each of them changed", { once: true }, async (stage) => {
  const { page, partner } = await signedIn(stage, "quotas");
  await page.says("No quotas yet");
  const body = { name: "shared", kinds: ["text"], limits: { tokens: 1000 } };
  const quota = (await stage.backend.admin("POST", `/api/quotas/${partner}`, body)).content;
  await page.open(`p/${partner}/quotas/${quota.id}`);
  await page.says("shared");
  await page.click("Edit…");
  const path = `/api/quotas/${partner}/${quota.id}`;
  await stage.backend.admin("PUT", path, { name: "renamed by another", limits: { tokens: 2000 } });
  await page.enter("allowed_models", "one\n");
  await page.click("Save");
  await page.says("The quota is changed");
  await page.says("renamed by another");
  const { name, limits, allowed_models } = (await stage.backend.admin("GET", path)).content;
  assert.deepEqual([name, limits.tokens, allowed_models], ["renamed by another", 2000, ["one"]]);
  assert.deepEqual(await uncaught(page), []);
});
