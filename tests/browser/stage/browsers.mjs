// Headless browsers, with the programs that Debian and cargo installed; nothing is downloaded.

import { execFileSync } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { Builder, Browser } from "selenium-webdriver";
import chrome from "selenium-webdriver/chrome.js";
import firefox from "selenium-webdriver/firefox.js";

import { scaled } from "./waiting.mjs";

process.env.SE_OFFLINE = "true";
process.env.SE_AVOID_STATS = "true";

const ALL = ["chromium", "firefox"];

/**
 * The browsers to test in; `BROWSER=chromium` restricts them to one. Systems name the program there that opens links, which restricts
 * nothing.
 */
export const BROWSERS = ALL.includes(process.env.BROWSER) ? [process.env.BROWSER] : ALL;

/** The browsers that are left out. */
export const LEFT_OUT = ALL.filter((browser) => !BROWSERS.includes(browser));

/** How long a script in a page may take unless a test says so. */
const SCRIPT_MS = 30_000;

/**
 * Opens a browser.
 *
 * @param {"chromium" | "firefox"} name
 * @param {object} options
 * @param {Record<string, string>} [options.env] - Of the browser: the sound card.
 * @param {string} [options.microphoneFile] - A WAV file that Chromium takes for its microphone.
 * @param {{ width: number, height: number, pixelRatio?: number }} [options.phone] - The screen of a phone.
 * @param {string} [options.windowSize] - Of the window otherwise.
 * @param {boolean} [options.asking] - Whether the visitor is asked for the microphone; otherwise it is allowed.
 * @param {boolean} [options.dark] - Whether the visitor prefers dark pages.
 * @param {boolean} [options.trusting] - Whether certificates of any authority are taken.
 */
export async function openBrowser(name, options = {}) {
  const browser = await (name === "firefox" ? openFirefox(options) : openChromium(options));
  await browser.driver.manage().setTimeouts({ script: scaled(SCRIPT_MS) });
  return browser;
}

async function openChromium({ env, microphoneFile, windowSize = "1200,900", phone, asking, dark, trusting }) {
  const options = new chrome.Options();
  options.setAcceptInsecureCerts(trusting === true);
  options.setChromeBinaryPath("/usr/bin/chromium");
  options.addArguments(
    "--headless=new",
    "--no-sandbox",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-background-networking",
    `--window-size=${windowSize}`,
  );
  if (!asking) options.addArguments("--use-fake-ui-for-media-stream");
  if (microphoneFile) {
    options.addArguments(
      "--use-fake-device-for-media-stream",
      `--use-file-for-fake-audio-capture=${microphoneFile}%noloop`,
    );
  }
  if (phone) options.setMobileEmulation({ deviceMetrics: { pixelRatio: 1, ...phone } });
  options.setLoggingPrefs({ browser: "ALL" });
  const service = new chrome.ServiceBuilder("/usr/bin/chromedriver").setEnvironment({ ...process.env, ...env });
  const driver = await new Builder().forBrowser(Browser.CHROME).setChromeOptions(options).setChromeService(service).build();
  const media = (name, value) => driver.sendDevToolsCommand("Emulation.setEmulatedMedia", { features: [{ name, value }] });
  const prefer = (scheme) => media("prefers-color-scheme", scheme);
  await prefer(dark ? "dark" : "light");
  return {
    name: "chromium",
    driver,
    /** Makes the visitor prefer `light` or `dark` pages. */
    prefer,
    /** Makes the system choose the colours of pages, as in high contrast, or no more. */
    forceColors: (force) => (force ? media("forced-colors", "active") : prefer(dark ? "dark" : "light")),
    /** Shows pages as they are printed. */
    print: () => driver.sendDevToolsCommand("Emulation.setEmulatedMedia", { media: "print" }),
    /** Answers for the visitor, whom this page asks for the microphone: no. */
    denyMicrophone: () => driver.setPermission("microphone", "denied"),
    /** What the console shows, as far as it was not read before. */
    async console() {
      const entries = await driver.manage().logs().get("browser");
      return entries.map(({ level, message }) => `${level.name} ${message}`);
    },
    close: () => driver.quit(),
  };
}

/** Firefox's setting for the pages that the visitor prefers: 0 is dark, 1 is light. */
const SCHEME = "layout.css.prefers-color-scheme.content-override";

/** Firefox's setting for who chooses the colours of pages: 0 is the page unless the system is in high contrast, 2 nobody. */
const COLORS = "browser.display.document_color_use";

async function openFirefox({ env, phone, asking, dark, trusting }) {
  const folder = mkdtempSync(path.join(tmpdir(), "colloquy-firefox-"));
  const log = path.join(folder, "log");
  const options = new firefox.Options();
  options.setAcceptInsecureCerts(trusting === true);
  options.addArguments("-headless");
  // The microphone is the sound card's: Firefox's own fake one makes a tone, no speech.
  options.setPreference("media.navigator.permission.disabled", !asking);
  options.setPreference("media.autoplay.default", 0);
  options.setPreference("devtools.console.stdout.content", true);
  options.setPreference(SCHEME, dark ? 0 : 1);
  const geckodriver = execFileSync("sh", ["-c", "command -v geckodriver"], { encoding: "utf8" }).trim();
  // Access to the browser's own settings, while it runs.
  const service = new firefox.ServiceBuilder(geckodriver).addArguments("--allow-system-access").setEnvironment({ ...process.env, ...env }).setStdio([
    "ignore",
    openSync(log, "a"),
    "ignore",
  ]);
  const driver = await new Builder().forBrowser(Browser.FIREFOX).setFirefoxOptions(options).setFirefoxService(service).build();
  if (phone) await popUp(driver, phone);
  const setting = async (name, value) => {
    await driver.setContext("chrome");
    await driver.executeScript("Services.prefs.setIntPref(...arguments)", name, value);
    await driver.setContext("content");
  };
  let read = 0;
  return {
    name: "firefox",
    driver,
    prefer: (scheme) => setting(SCHEME, scheme === "dark" ? 0 : 1),
    forceColors: (force) => setting(COLORS, force ? 2 : 0),
    async print() {
      await driver.setContext("chrome");
      await driver.executeScript("window.gBrowser.selectedBrowser.browsingContext.mediumOverride = 'print'");
      await driver.setContext("content");
    },
    denyMicrophone: () => setting("permissions.default.microphone", 2),
    async console() {
      const text = readFileSync(log, "utf8");
      const fresh = text.slice(read).split("\n").filter((line) => line.startsWith("console."));
      read = text.length;
      return fresh;
    },
    async close() {
      await driver.quit();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Goes on in a small window without toolbars: those with them are never as narrow as a phone. */
async function popUp(driver, { width, height }) {
  const [first] = await driver.getAllWindowHandles();
  await driver.executeScript(`window.open("about:blank", "", "popup,width=${width},height=${height}")`);
  const second = (await driver.getAllWindowHandles()).find((handle) => handle !== first);
  await driver.close();
  await driver.switchTo().window(second);
}

/** The browsers that tests share. A test gets a tab, or the window of a phone; starting a browser for each would take longer than most tests. */
export class BrowserPool {
  #env;
  #open = new Map();

  constructor(env) {
    this.#env = env;
  }

  /** A new tab, the window of a phone that another test had, or, where there are other options, a browser of its own. */
  async lend(name, options) {
    const isPhone = options !== undefined && Object.keys(options).join() === "phone";
    if (options && !isPhone) return openBrowser(name, { env: this.#env, ...options });
    const kind = JSON.stringify([name, options?.phone]);
    let browser = this.#open.get(kind);
    if (!browser) {
      browser = await openBrowser(name, { env: this.#env, ...options });
      browser.kind = kind;
      browser.firstTab = await browser.driver.getWindowHandle();
      this.#open.set(kind, browser);
    }
    if (!isPhone) await browser.driver.switchTo().newWindow("tab");
    await browser.console();
    return browser;
  }

  /** Closes the test's tabs; a browser in which something failed, or that has no other tab, is closed as a whole. */
  async takeBack(browser, failed) {
    const shared = browser === this.#open.get(browser.kind);
    if (!shared || failed || !(await this.#closeTabs(browser))) {
      if (shared) this.#open.delete(browser.kind);
      await browser.close().catch(() => {});
    }
  }

  async #closeTabs({ driver, firstTab }) {
    try {
      for (const tab of await driver.getAllWindowHandles()) {
        if (tab === firstTab) continue;
        await driver.switchTo().window(tab);
        await driver.close();
      }
      await driver.switchTo().window(firstTab);
      await driver.get("about:blank");
      return true;
    } catch {
      return false;
    }
  }

  async close() {
    for (const browser of this.#open.values()) await browser.close().catch(() => {});
    this.#open.clear();
  }
}
