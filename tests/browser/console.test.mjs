// The console: sign-in, sign-out, a session that ends midway, phones, other origins.

import assert from "node:assert/strict";
import { createServer } from "node:http";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;

/** Opens the console of the stage's backend. */
async function console_(stage, rest) {
  const page = new ConsolePage(stage.browser, stage.backend.url);
  await page.forget();
  await page.open(rest);
  return page;
}

/** Creates a key of the partner. */
async function createKey({ backend }, name) {
  return (await backend.admin("POST", `/api/keys/${PARTNER}`, { name })).content;
}

async function createLink({ backend }, key) {
  const answer = await fetch(`${backend.url}/api/console/links`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: "{}",
  });
  return new URL((await answer.json()).url).hash;
}

consoleScene("a partner signs in to the console, creates a key, revokes it and signs out", {}, async (stage) => {
  const page = await console_(stage);
  await accessible(page, "signed out", null);
  await page.signIn("cqk_wrong_key_of_nobody");
  await page.says("This API key is not valid.");
  const own = await createKey(stage, "console");
  await page.signIn(own.api_key);
  await page.click("Keys");
  await page.click("Create a key");
  await page.enter("name", HOSTILE);
  await accessible(page, "creating a key", null);
  await page.click("Create the key");
  await page.says("It is not shown again.");
  const made = await page.driver.executeScript("return document.querySelector('input.secret').value");
  const me = await fetch(`${stage.backend.url}/api/auth/me`, { headers: { "x-api-key": made } });
  assert.equal((await me.json()).partner, PARTNER);
  await page.click("Done");
  await page.says(HOSTILE);
  await accessible(page, "keys", null);
  await page.click(`Revoke ${HOSTILE}`);
  await page.click("Revoke");
  await page.says("is revoked");
  const revoked = await fetch(`${stage.backend.url}/api/auth/me`, { headers: { "x-api-key": made } });
  assert.equal(revoked.status, 401);
  // Partners are for administrators.
  assert.ok(!(await page.text()).includes("Partners"));
  assert.equal(await page.ask("GET", `/api/partners/${PARTNER}`), 403);
  await page.click("Your session");
  await page.click("Sign out");
  await page.says("Sign in to Colloquy");
  assert.equal(await page.ask("GET", `/api/keys/${PARTNER}`), 401);
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("a link signs in to the console once", { once: true }, async (stage) => {
  const { api_key } = await createKey(stage, "link");
  const link = await createLink(stage, api_key);
  const page = await console_(stage, link);
  await page.says("It can be used once.");
  assert.ok(!(await page.driver.getCurrentUrl()).includes("#"), "it is no part of the address any more");
  await page.click("Sign in");
  await page.click("Your session");
  await page.click("Sign out");
  await page.says("Sign in to Colloquy");
  await page.open(link);
  await page.click("Sign in");
  await page.says("expired");
});

consoleScene("a session that ends midway is asked for above the page", {}, async (stage) => {
  const { api_key } = await createKey(stage, "midway");
  const page = await console_(stage);
  await page.signIn(api_key);
  await page.click("Keys");
  await page.click("Create a key");
  await page.enter("name", "kept");
  assert.equal(await page.ask("DELETE", "/api/console/sessions"), 204);
  await page.click("Create the key");
  await page.says("Your session has ended");
  await accessible(page, "session ended", null);
  await page.signIn(api_key);
  await page.saysNoMore("Your session has ended");
  assert.equal(await (await page.field("name")).getAttribute("value"), "kept");
  await page.click("Create the key");
  await page.says("It is not shown again.");
});

consoleScene("the console says when it hears of no changes, and catches up", { once: true }, async (stage) => {
  const { api_key } = await createKey(stage, "live");
  const page = await console_(stage, `p/${PARTNER}/usage`);
  await page.signIn(api_key);
  await page.says("Usage");
  // This view does not listen.
  await page.driver.executeScript(() => {
    const { fetch } = window;
    window.isLost = true;
    window.fetch = (resource, init) =>
      window.isLost && String(resource).includes("/api/events/") ? Promise.reject(new TypeError("lost")) : fetch(resource, init);
  });
  await page.click("Keys");
  await page.says("Create a key");
  await page.says("No live updates");
  await accessible(page, "no live updates", null);
  const made = `made meanwhile ${stage.browserName}`;
  await createKey(stage, made);
  assert.ok(!(await page.text()).includes(made));
  await page.driver.executeScript("window.isLost = false");
  await page.saysNoMore("No live updates");
  await page.says(made);
});

consoleScene("a call is followed in the console, ended there, and found with its transcript and its webhook", { demo: true, webhook: true }, async (stage) => {
  await stage.page.call();
  await stage.page.type(HOSTILE);
  await stage.page.says("user", "the typed words", (text) => text === HOSTILE);
  const id = stage.callId.replace("/v2/calls/", "");
  const { driver } = stage.browser;
  const visitors = await driver.getWindowHandle();
  await driver.switchTo().newWindow("tab");
  const page = await console_(stage);
  await page.signIn((await createKey(stage, "calls")).api_key);
  await page.says("Calls in progress");
  await page.follow(`p/${PARTNER}/calls/${id}`);
  await page.says(HOSTILE);
  await page.says("The call goes on.");
  await accessible(page, "a call in progress", null);
  await page.click("End the call");
  await page.says("The visitor hears no more");
  await accessible(page, "ending a call", null);
  await page.click("End the call");
  await page.says("completed");
  const operators = await driver.getWindowHandle();
  await driver.switchTo().window(visitors);
  await stage.page.ended();
  await until("the webhook", () => stage.deliveries.length === 1);
  await driver.close();
  await driver.switchTo().window(operators);
  await page.click("Calls");
  await page.enter("character", `nobody${Key.ENTER}`);
  await page.says("No call matches");
  await accessible(page, "no calls", null);
  await page.choose("state", "completed");
  // Other scenes make calls, too.
  await page.enter("character", "quiet\n");
  await until("the address has the filter", async () => {
    const { searchParams } = new URL(await page.driver.getCurrentUrl());
    return searchParams.get("state") === "completed" && searchParams.get("character") === "quiet";
  });
  await page.says(id.slice(-8));
  await accessible(page, "calls", null);
  await page.follow(`p/${PARTNER}/calls/${id}`);
  await page.says(HOSTILE);
  await page.says("succeeded");
  for (const said of ["Joined", "Ended", "Cost", "What the visitor told", "Nothing. A call looks for"]) await page.says(said);
  await page.says("Worst of the call");
  await page.driver.executeScript(() => {
    document.querySelectorAll("input[name=quality-chart]")[1].click();
    [...document.querySelectorAll("main summary")].find(({ innerText }) => innerText === "Figures").click();
  });
  await page.says("Lost to the visitor");
  assert.match(await page.text(), /Lost to the visitor[\s\S]*\n\d+:\d\d\s/);
  await accessible(page, "a call", null);
  await page.click("Send again");
  // The receiver ignores what it has received before; the page shows the second attempt without a click.
  await until("both attempts show", async () => /\n2\s.*200/.test(await page.text()));
  await page.click("All calls");
  await page.says("Show all");
  await page.click("Webhook deliveries");
  const delivery = stage.deliveries[0].headers["webhook-id"];
  await page.follow(`p/${PARTNER}/webhooks/${delivery}`);
  await page.says(`Delivery ${delivery.slice(-8)}`);
  await accessible(page, "a delivery", null);
  await page.click("Characters");
  await page.follow(`p/${PARTNER}/characters/quiet`);
  await page.says("You are a friendly helper in a test.");
  await accessible(page, "a character", null);
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("the console on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const page = await console_(stage);
  const { api_key } = await createKey(stage, "phone");
  const fits = async (state) => {
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wanted <= there, `${state}: ${wanted} of ${there} pixels`);
  };
  await fits("signed out");
  await page.signIn(api_key);
  await page.says("Overview");
  await page.saysNoMore("Loading…");
  await fits("overview");
  await page.click("Menu");
  await accessible(page, "the menu on a phone", null);
  await page.click("Calls");
  await page.says("Up to and including");
  await fits("calls");
  await page.click("Menu");
  await page.click("Keys");
  await page.click("Create a key");
  await fits("creating a key");
});

consoleScene("another page has nothing of a session of the console", {}, async (stage) => {
  const { api_key } = await createKey(stage, "other pages");
  // Of the same host as the page below, so that browsers send the cookie.
  const backend = stage.backend.url.replace("127.0.0.1", "localhost");
  const page = new ConsolePage(stage.browser, backend);
  await page.forget();
  await page.open();
  await page.signIn(api_key);
  await page.says("Overview");
  const keys = `/api/keys/${PARTNER}`;
  assert.equal(await page.ask("GET", keys), 200);

  const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>Another page</title>"));
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  try {
    await page.driver.get(`http://localhost:${other.address().port}/`);
    const asked = (route, options) =>
      page.driver.executeAsyncScript(
        (url, given, done) => fetch(url, { credentials: "include", ...given }).then(({ status, type }) => done(`${type} ${status}`), () => done("refused")),
        `${backend}${route}`,
        options,
      );
    assert.equal(await asked(keys, {}), "refused");
    assert.equal(await asked(keys, { headers: { "X-Colloquy-Console": "http" } }), "refused");
    const headers = { "content-type": "application/json" };
    assert.equal(await asked("/api/console/session", { method: "POST", headers, body: JSON.stringify({ api_key }) }), "refused");

    // What shows in a frame is there for clicks that are meant for something else.
    const framed = async (route) => {
      const frame = await page.driver.executeAsyncScript((src, done) => {
        const made = document.createElement("iframe");
        made.onload = () => done(made);
        made.src = src;
        document.body.append(made);
      }, backend + route);
      await page.driver.switchTo().frame(frame);
      const text = await page.driver.executeScript("return document.documentElement.textContent");
      await page.driver.switchTo().defaultContent();
      return text;
    };
    assert.match(await framed("/health"), /uptime/);
    assert.doesNotMatch(await framed("/console/"), /Colloquy/);
  } finally {
    other.closeAllConnections();
    other.close();
  }
});
