// WebKitGTK's small browser, on a screen of its own that nobody sees.

import { execFileSync } from "node:child_process";

import { Builder } from "selenium-webdriver";

import { freePort, Program } from "./programs.mjs";
import { until } from "./waiting.mjs";

/** Where Debian has the small browser of its WebKit, whatever its version. */
const FIND = "ls /usr/lib/*/webkit2gtk-4.*/MiniBrowser | tail -n 1";

/** Opens the browser, with a microphone that is none and is allowed. */
export async function openWebKit() {
  const display = `:${100 + (process.pid % 1_000)}`;
  const screen = new Program("Xvfb", [display, "-screen", "0", "1200x900x24", "-nolisten", "tcp"]);
  const port = await freePort();
  const service = new Program("WebKitWebDriver", [`--port=${port}`], {
    DISPLAY: display,
    WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
  });
  const url = `http://127.0.0.1:${port}`;
  await until("WebKitWebDriver answers", () => fetch(`${url}/status`).then(({ ok }) => ok, () => false));
  const binary = execFileSync("sh", ["-c", FIND], { encoding: "utf8" }).trim();
  const args = ["--automation", "--enable-media-stream=true", "--enable-webrtc=true", "--enable-mock-capture-devices=true"];
  const driver = await new Builder()
    .usingServer(url)
    .withCapabilities({ browserName: "MiniBrowser", "webkitgtk:browserOptions": { binary, args } })
    .build();
  return {
    driver,
    async close() {
      await driver.quit().catch(() => {});
      await service.stop();
      await screen.stop();
    },
  };
}
