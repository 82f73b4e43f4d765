// Usage, quotas and partners in the console.

import assert from "node:assert/strict";

import { By } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;

/** Opens the console, signed in with the key of a partner without quotas. */
async function signedIn({ backend, browser, browserName }, what) {
  const partner = `${what}-${browserName}`;
  const { content } = await backend.admin("POST", `/api/partners/${partner}`, {});
  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open();
  await page.signIn(content.api_key);
  await page.says("Overview");
  return { page, partner };
}

/** Has a text spoken with the key of a quota. */
async function speak({ backend }, key, input) {
  const answer = await fetch(`${backend.url}/v2/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "colloquy-tts", voice: "en", input }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** Returns the key that is shown once, and closes its dialog. */
async function shownKey(page) {
  await page.says("It is not shown again.");
  const key = await page.driver.executeScript("return document.querySelector('input.secret').value");
  await page.click("Done");
  return key;
}

/** Checks or unchecks a box. */
async function toggle(page, name, value) {
  const clicked = () =>
    page.driver.executeScript((css) => {
      const box = document.querySelector(css);
      box?.click();
      return box !== null;
    }, `input[name="${name}"]${value ? `[value="${value}"]` : ""}`);
  await until(`there is a box ${name}`, clicked);
}

/** Returns the rows of the table, each with the texts of its cells. */
const rows = (page) =>
  page.driver.executeScript(() => [...document.querySelectorAll("main table tr")].map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

/** Returns the number of pixels of the chart that have the colour of its first series. */
const coloured = (page) =>
  page.driver.executeScript(() => {
    const canvas = document.querySelector(".usage-chart canvas");
    if (!canvas) return 0;
    const [red, green, blue] = getComputedStyle(document.querySelector(".swatch.series-1")).backgroundColor.match(/\d+/g).map(Number);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) count += 1;
    return count;
  });

async function unharmed(page) {
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
  assert.deepEqual(await page.driver.executeScript("return window.uncaught"), []);
}

consoleScene("a quota is created, used up, raised, given another key and revoked", {}, async (stage) => {
  const { page, partner } = await signedIn(stage, "quotas");
  await page.click("Quotas");
  await page.says("No quotas yet");
  await accessible(page, "no quotas", null);
  await page.click("Create a quota");
  await page.enter("name", HOSTILE);
  await toggle(page, "kinds", "text");
  await page.click("Create the quota");
  await page.says("name at least one kind");
  await toggle(page, "kinds", "speech");
  await page.choose("period", "each day");
  await page.enter("limits.characters", "30");
  await page.enter("allowed_models", "colloquy-tts\n");
  await accessible(page, "creating a quota", null);
  await page.click("Create the quota");
  const key = await shownKey(page);
  await page.says(HOSTILE);
  await page.says("0 of 30 characters spoken");
  assert.equal(await speak(stage, key, "Twenty characters!! "), 200);
  await until("the use is stored", async () => {
    await page.click("Read again");
    return (await page.text()).includes("20 of 30 characters spoken");
  });
  await accessible(page, "quotas", null);

  assert.equal(await speak(stage, key, "Twenty more, too many"), 429);
  await page.click(HOSTILE);
  await page.says("10 left");
  await page.click("Edit…");
  await page.enter("limits.characters", "100");
  await page.choose("expiry", "after some days");
  await page.enter("expires_in_days", "7");
  await accessible(page, "editing a quota", null);
  await page.click("Save");
  await page.says("20 of 100");
  assert.equal(await speak(stage, key, "Twenty more, too many"), 200);
  await until("the chart of the quota has bars", async () => {
    await page.click("Read again");
    return (await coloured(page)) > 0;
  });
  await accessible(page, "a quota", null);

  await page.click("Overview");
  await page.says("Quotas closest to their limits");
  await page.says("41% of characters spoken");
  // Nobody has set a price.
  await page.says("≥ $0.00");
  const spent = async () => (await rows(page)).filter(([by]) => ["All", "Quotas and playgrounds", "Knowledge bases"].includes(by)).map(([by]) => by);
  assert.deepEqual(await spent(), ["All", "Quotas and playgrounds", "Knowledge bases"]);
  await page.says("As of");
  await accessible(page, "an overview with spending", null);
  await page.click(HOSTILE);
  await page.press("Replace the key…");
  await page.says("its present key ends at once");
  await page.press("Replace the key");
  const other = await shownKey(page);
  assert.equal(await speak(stage, key, "old"), 401);
  assert.equal(await speak(stage, other, "new"), 200);
  await page.click("Revoke…");
  await page.says("cannot be undone");
  await page.click("Revoke");
  await page.says("is revoked");
  assert.equal(await speak(stage, other, "new"), 401);
  const [quota] = (await stage.backend.admin("GET", `/api/quotas/${partner}`)).content;
  assert.notEqual(quota.revoked_at, null);
  assert.notEqual(quota.expires_at, null);
  assert.deepEqual(quota.allowed_models, ["colloquy-tts"]);
  await unharmed(page);
});

consoleScene("usage is shown by day, model and key, and as a CSV file of the same rows", {}, async (stage) => {
  const { page, partner } = await signedIn(stage, "usage");
  await page.click("Usage");
  await page.says("No usage on these days");
  await accessible(page, "no usage", null);
  const spoken = { site: "What the site says.", phone: "What the phone says, which is longer." };
  for (const [name, text] of Object.entries(spoken)) {
    const { content } = await stage.backend.admin("POST", `/api/quotas/${partner}`, { name, kinds: ["speech"] });
    assert.equal(await speak(stage, content.api_key, text), 200);
  }
  const total = String(spoken.site.length + spoken.phone.length);
  await until("the usage is stored", async () => {
    await page.click("Read again");
    return (await rows(page)).at(-1)?.includes(total);
  });
  await page.choose("measure", "Characters spoken");
  await until("the chart has bars", async () => (await coloured(page)) > 0);
  await accessible(page, "usage", null);
  // The day that the pointer is on, and the colours of the other theme.
  const [over] = await page.driver.findElements(By.css(".usage-chart .u-over"));
  const { width } = await over.getRect();
  await page.driver.actions().move({ origin: over, x: Math.floor(width / 2) - 3 }).perform();
  const caption = () => page.driver.executeScript("return document.querySelector('.legend').innerText");
  await until("the caption names the day", async () => (await caption()).includes(String(new Date().getUTCFullYear())));
  assert.ok((await caption()).includes(total), await caption());
  const colour = () => page.driver.executeScript("return getComputedStyle(document.querySelector('.swatch')).backgroundColor");
  const before = await colour();
  await page.click("Switch between light and dark");
  await until("the other theme", async () => (await colour()) !== before);
  await until("the chart has its colours", async () => (await coloured(page)) > 0);
  await page.click("Switch between light and dark");

  // Keys beside days, then keys alone, the largest first.
  await toggle(page, "by-key");
  await until("rows for keys", async () => (await rows(page)).length === 4);
  await page.says("phone");
  await toggle(page, "by-day");
  await page.choose("order", "largest first");
  const address = async () => new URL(await page.driver.getCurrentUrl()).search;
  await until("the address has the filter", async () => (await address()) === "?measure=characters&by=key&order=largest");
  await until("only keys", async () => (await rows(page))[0][0] === "Key");
  const shown = (await rows(page)).slice(1, -1).map(([name, requests, , , , characters]) => [name, requests, characters]);
  assert.deepEqual(shown, [["phone", "1", String(spoken.phone.length)], ["site", "1", String(spoken.site.length)]]);
  // The last box stays checked.
  await toggle(page, "by-key");
  assert.equal(await page.driver.executeScript("return document.querySelector('[name=by-key]').checked"), true);
  await accessible(page, "usage by key", null);

  await page.driver.executeScript(`
    const { createObjectURL } = URL;
    URL.createObjectURL = (blob) => {
      blob.text().then((text) => (window.saved = text));
      return createObjectURL(blob);
    };
  `);
  await page.click("Download CSV");
  const saved = await until("a file", () => page.driver.executeScript("return window.saved"));
  const lines = saved.trimEnd().split("\r\n").map((line) => line.split(","));
  const place = (name) => lines[0].indexOf(name);
  const read = lines.slice(1).map((cells) => [cells[place("quota_name")], cells[place("requests")], cells[place("characters")]]);
  assert.deepEqual(read.sort(), [...shown].sort());

  await page.driver.executeScript((day) => {
    const field = document.querySelector("[name=from]");
    field.value = day;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }, "2020-01-01");
  await page.says("1 to 366 days");
  await unharmed(page);
});

consoleScene("a key is created with scopes and an end", { once: true }, async (stage) => {
  const { page, partner } = await signedIn(stage, "keys");
  await page.click("Keys");
  await page.click("Create a key");
  await page.enter("name", "limited");
  await page.choose("allowed", "what is chosen");
  await page.click("Create the key");
  await page.says("Choose what the key is allowed for.");
  for (const scope of ["calls", "keys"]) await toggle(page, "scopes", scope);
  // The scopes stay chosen while another kind is looked at.
  await page.choose("kind", "Publishable, for web pages: makes calls only");
  await page.says("Origins of the web pages");
  await page.choose("kind", "Secret, for servers");
  await page.choose("expiry", "after some days");
  await page.enter("expires_in_days", "30");
  await accessible(page, "creating a key", null);
  await page.click("Create the key");
  const key = await shownKey(page);
  await page.says("calls, keys, quotas and usage");
  const { content } = await stage.backend.admin("GET", `/api/keys/${partner}`);
  const made = content.find(({ name }) => name === "limited");
  assert.deepEqual(made.scopes, ["calls", "keys"]);
  const days = (Date.parse(made.expires_at) - Date.now()) / 86_400_000;
  assert.ok(days > 29 && days <= 30, made.expires_at);

  // Such a key passes on its own scopes alone, and sees the views that they allow.
  await page.forget();
  await page.open();
  await page.signIn(key);
  await page.says("Quotas");
  const views = await page.driver.executeScript("return document.querySelector('nav').innerText");
  assert.ok(views.includes("Calls") && !views.includes("Knowledge"), views);
  await page.click("Keys");
  await page.click("Create a key");
  const offered = await page.driver.executeScript("return [...document.querySelectorAll('[name=scopes]')].map(({ value }) => value)");
  assert.deepEqual(offered, ["calls", "keys"]);
  await unharmed(page);
});

consoleScene("usage and quotas on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const { page, partner } = await signedIn(stage, "narrow");
  const long = { name: "the site of a customer with a long name", kinds: ["speech"], limits: { characters: 1_000_000, dollars: "12.5" } };
  const { content } = await stage.backend.admin("POST", `/api/quotas/${partner}`, long);
  assert.equal(await speak(stage, content.api_key, "Hello there."), 200);
  const fits = async (state) => {
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wanted <= there, `${state}: ${wanted} of ${there} pixels`);
  };
  await page.open(`p/${partner}/quotas`);
  await page.says("12 of 1,000,000");
  await fits("quotas");
  await page.click("Create a quota");
  await fits("creating a quota");
  await accessible(page, "creating a quota on a phone", null);
  await page.open(`p/${partner}/usage?by=day,model,key&measure=characters`);
  await until("the chart has bars", async () => (await coloured(page)) > 0);
  await fits("usage");
  await accessible(page, "usage on a phone", null);
});

consoleScene("an administrator creates a partner, switches its settings and deletes it", { once: true }, async (stage) => {
  const { backend, browser, browserName } = stage;
  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open();
  await page.signIn(backend.adminKey);
  await page.click("Partners");
  await page.click("Create a partner");
  const partner = `made-${browserName}`;
  await page.enter("partner", partner);
  await page.enter("display_name", HOSTILE);
  await accessible(page, "creating a partner", null);
  await page.click("Create the partner");
  const key = await shownKey(page);
  const me = await fetch(`${backend.url}/api/auth/me`, { headers: { "x-api-key": key } });
  assert.equal((await me.json()).partner, partner);
  await page.says(HOSTILE);
  await page.click(`Edit ${partner}`);
  await page.choose("settings.transcription_enabled", "off");
  await page.enter("settings.requests_per_minute", "120");
  await page.enter("settings.allowed_models", "gpt\nmini");
  await page.enter("settings.vectorstore_sync_requests_per_minute", "30");
  await page.enter("settings.storage_bytes", "5000000");
  await accessible(page, "editing a partner", null);
  await page.click("Save");
  await page.says("no transcription, 30 requests a minute to the vector store, 120 requests a minute, storage of 5 MB, 2 allowed models");
  const { settings } = (await backend.admin("GET", `/api/partners/${partner}`)).content;
  assert.deepEqual(settings, {
    transcription_enabled: false, vectorstore_sync_requests_per_minute: 30, requests_per_minute: 120, storage_bytes: 5_000_000, allowed_models: ["gpt", "mini"],
  });
  await accessible(page, "partners", null);
  await page.click(`Delete ${partner}`);
  await page.says("Everything of");
  await accessible(page, "deleting a partner", null);
  await page.enter("confirmation", partner);
  await page.click("Delete");
  await page.says(`The partner ${partner} is deleted`);
  assert.equal((await fetch(`${backend.url}/api/auth/me`, { headers: { "x-api-key": key } })).status, 401);
  await unharmed(page);
});

/** Keys of the long list: more pages than are read again as a whole. */
const MANY = 620;

/** Settings of a server that takes as many requests as are sent. */
const HASTY = { COLLOQUY_LIMITS_REQUESTS_PER_MINUTE: "100000", COLLOQUY_LIMITS_REQUEST_BURST: "100000" };

consoleScene("a long list is read as one scrolls, and again only where one is", { once: true, backend: HASTY }, async (stage) => {
  const { page, partner } = await signedIn(stage, "long");
  const create = (place) => stage.backend.admin("POST", `/api/keys/${partner}`, { name: `key-${place}` });
  const places = Array.from({ length: MANY }, (_, place) => place);
  while (places.length > 0) await Promise.all(places.splice(0, 20).map(create));
  await page.click("Keys");
  const listed = () => page.driver.executeScript("return [...document.querySelectorAll('tbody th[scope=row]')].map(({ innerText }) => innerText.trim())");
  const isIn = (name) =>
    page.driver.executeScript((wanted) => {
      const header = [...document.querySelectorAll("tbody th[scope=row]")].find(({ innerText }) => innerText.trim() === wanted);
      const box = header?.getBoundingClientRect();
      return box !== undefined && box.bottom > 0 && box.top < innerHeight;
    }, name);
  const first = await until("there are keys", async () => (await listed())[0]);
  const atEnd = async () => {
    await page.driver.executeScript("scrollTo(0, document.body.scrollHeight)");
    return page.driver.executeScript("return document.querySelector('.more') === null");
  };
  await until("the end of the list is there", atEnd);
  assert.ok((await listed()).length < MANY / 2, `${(await listed()).length} rows are on the page`);
  assert.ok(!(await isIn(first)));
  await accessible(page, "the end of a long list", null);

  // A change is read where the window is, and with the first page.
  // The oldest key is that of the session.
  const last = (await listed()).at(-2);
  await until(`${last} is in view`, async () => (await atEnd()) && isIn(last));
  const asked = () =>
    page.driver.executeScript("return performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/keys/')).length");
  const before = await asked();
  const keys = [];
  for (let next = `/api/keys/${partner}`; next && !keys.some(({ name }) => name === last); ) {
    const answer = await fetch(new URL(next, stage.backend.url), { headers: { "x-api-key": stage.backend.adminKey } });
    keys.push(...(await answer.json()));
    next = /<([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1];
  }
  const { id } = keys.find(({ name }) => name === last);
  await stage.backend.admin("DELETE", `/api/keys/${partner}/${id}`);
  await until(`${last} is revoked`, () => page.driver.executeScript("return document.querySelector('tbody:last-of-type tr.over') !== null"));
  assert.ok((await asked()) - before <= 5, `${(await asked()) - before} requests`);

  await until(`${first} is in view again`, async () => {
    await page.driver.executeScript("scrollTo(0, 0)");
    return isIn(first);
  });
  assert.ok((await listed()).length < MANY / 2);
});
