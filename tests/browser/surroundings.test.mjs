// The console in its surroundings: behind a proxy with TLS, and on paper.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

async function createKey({ backend }, name) {
  return (await backend.admin("POST", `/api/keys/${PARTNER}`, { name })).content;
}

/** Starts a proxy that speaks TLS with browsers, and leaves the `Host` header as browsers send it. */
async function proxyWithTls({ url, tls: { certFile, keyFile } }) {
  const identity = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  const proxy = https.createServer(identity, (request, response) => {
    const { method, headers } = request;
    const passed = http.request(new URL(request.url, url), { method, headers, setHost: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return proxy;
}

consoleScene("a proxy with TLS stands before the console", { browser: { trusting: true } }, async (stage) => {
  const { api_key } = await createKey(stage, `over TLS, in ${stage.browserName}`);
  const proxy = await proxyWithTls(stage.backend);
  try {
    const page = new ConsolePage(stage.browser, `https://localhost:${proxy.address().port}`);
    await page.open(`p/${PARTNER}/keys`);
    await page.signIn(api_key);
    await page.says("Create a key");
    const cookies = await page.driver.manage().getCookies();
    const [session] = cookies.filter(({ name }) => name.startsWith("__Host-colloquy-session"));
    assert.deepEqual([session?.secure, session?.httpOnly, session?.sameSite], [true, true, "Strict"], JSON.stringify(cookies));

    // Changes come through it.
    const made = `made beside the proxy, in ${stage.browserName}`;
    await createKey(stage, made);
    await page.says(made);

    assert.deepEqual(await page.violations(), []);

    await page.driver.navigate().refresh();
    await page.says(made);

    // The cookie is nothing without TLS.
    const asked = await fetch(`${stage.backend.url}/api/keys/${PARTNER}`, {
      headers: { cookie: `${session.name.replace("__Host-", "")}=${session.value}`, "x-colloquy-console": "http" },
    });
    assert.equal(asked.status, 401);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

consoleScene("a view is printed without what is there to click", { browser: {} }, async (stage) => {
  const name = `printed in ${stage.browserName}`;
  const { api_key } = await createKey(stage, name);
  const page = new ConsolePage(stage.browser, stage.backend.url);
  await page.open(`p/${PARTNER}/keys`);
  await page.signIn(api_key);
  await page.says(name);
  const shown = (selector) =>
    page.driver.executeScript((wanted) => [...document.querySelectorAll(wanted)].filter((element) => element.checkVisibility()).length, selector);
  assert.ok((await shown("button")) > 0);

  await stage.browser.print();
  await until("the page is as on paper", () => page.driver.executeScript(`return matchMedia("print").matches`));
  for (const selector of ["button", "nav", ".bar", ".filters"]) assert.equal(await shown(selector), 0, selector);
  const [row] = (await page.text()).split("\n").filter((line) => line.includes(name));
  assert.ok(row, "the key is in the table");
  // Chromium fills attributes in, Firefox names them.
  const [added, absolute] = await page.driver.executeScript(() => {
    const time = document.querySelector("time[data-absolute]");
    return [getComputedStyle(time, "::after").content, time.dataset.absolute];
  });
  assert.ok(added.includes(absolute) || added.includes("attr(data-absolute)"), `times are absolute on paper: ${added}`);
});
