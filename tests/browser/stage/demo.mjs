// The demo page as a test uses it: buttons are clicked, and what the page shows is read.

import { By } from "selenium-webdriver";

import { Ears } from "./ears.mjs";
import { PATIENCE_MS, SLOWNESS, scaled, until, untilInPage } from "./waiting.mjs";

/** Read in one go, so that the page is not asked for each element. */
function snapshot() {
  const text = (id) => document.getElementById(id).textContent;
  const shown = (id) => !document.getElementById(id).hidden;
  // Before the first call there is none.
  const conversation = document.getElementById("history").shadowRoot;
  const lines = conversation?.querySelectorAll("[part~=line]:not([hidden])") ?? [];
  return {
    state: document.body.dataset.call,
    label: text("state"),
    agent: document.getElementById("orb").dataset.agent,
    inCall: shown("hang-up"),
    muted: document.getElementById("mute").getAttribute("aria-pressed") === "true",
    timer: text("timer"),
    error: shown("error")
      ? { code: text("error-code"), advice: text("error-advice"), message: text("error-message") }
      : null,
    sources: shown("sources") ? text("sources") : null,
    visitor: shown("visitor") ? text("visitor") : null,
    unsent: text("unsent"),
    quality: shown("quality") ? text("quality-words") : null,
    findings: [...document.querySelectorAll("#findings p")].map((item) => ({
      // Absent while the check runs.
      ok: item.dataset.ok && item.dataset.ok === "true",
      words: item.textContent,
    })),
    lines: [...lines].map((line) => ({
      originator: line.part.contains("user") ? "user" : "bot",
      role: line.querySelector("[part=role]").textContent,
      text: line.querySelector("[part=text]").textContent,
      final: !line.part.contains("interim"),
    })),
    callbacks: [...document.querySelectorAll("#events li")].map((item) => ({
      name: item.dataset.callback,
      // By the page's clock, and since the call began.
      at: Number(item.dataset.at),
      atMs: Number(item.dataset.atMs),
      text: item.textContent,
    })),
  };
}

/** Put into the page: returns what it shows, and that as text, if it is not the text that is given. */
const CHANGED = `(last) => {
  const page = (${snapshot})();
  const text = JSON.stringify(page);
  return text !== last && { text, page };
}`;

/** Put into the page: keeps what nobody caught. */
function keepUncaught() {
  if (window.uncaught) return;
  window.uncaught = [];
  const keep = (what) => window.uncaught.push(String(what?.stack ?? what));
  addEventListener("error", ({ error, message }) => keep(error ?? message));
  addEventListener("unhandledrejection", ({ reason }) => keep(reason));
}

export class DemoPage {
  constructor(browser, url) {
    this.browser = browser;
    this.driver = browser.driver;
    this.url = url;
    this.ears = new Ears(this.driver);
  }

  async open() {
    await this.driver.get(this.url);
    await this.isReady();
    await this.ears.open();
  }

  /** Waits until the page works. */
  async isReady() {
    await untilInPage(this.driver, "the page is ready", () => document.querySelector("#microphone option") !== null);
    await this.driver.executeScript(keepUncaught);
  }

  /** The errors that nobody in the page caught since it is ready. */
  uncaught() {
    return this.driver.executeScript("return window.uncaught ?? []");
  }

  read() {
    return this.driver.executeScript(`return (${snapshot})()`);
  }

  /** Waits until the page shows what `test` looks for; `test` gets what `read()` gives, whenever that is another. */
  async shows(what, test, withinMs = PATIENCE_MS) {
    const deadline = Date.now() + scaled(withinMs);
    for (let last; ; ) {
      const { text, page } = await untilInPage(this.driver, what, CHANGED, [last ?? null], { withinMs: Math.max(0, deadline - Date.now()) / SLOWNESS });
      if (await test(page)) return page;
      last = text;
    }
  }

  async click(id) {
    await this.driver.findElement(By.id(id)).click();
  }

  /** Presses the button and waits until the call is connected. */
  async call({ mode = "server" } = {}) {
    await this.choose(mode);
    await this.click("call");
    return this.shows("the call is connected", ({ state, error }) => {
      if (error) throw new Error(`the page shows ${error.code}: ${error.message}`);
      return state === "ongoing";
    });
  }

  /** Chooses how the page calls. */
  async choose(mode) {
    await this.driver.findElement(By.css(`input[value=${mode}] + span`)).click();
  }

  /** Chooses a device by the name in its menu. */
  async chooseDevice(menu, label) {
    const option = await until(`${label} is offered`, () =>
      this.driver.findElement(By.xpath(`//select[@id="${menu}"]/option[contains(., "${label}")]`)).catch(() => null),
    );
    await option.click();
  }

  /** Whether a device menu offers this name. */
  offers(menu, label) {
    return this.driver.executeScript(
      "return [...document.getElementById(arguments[0]).options].some(({ text }) => text.includes(arguments[1]))",
      menu,
      label,
    );
  }

  /** Opens the settings, which are folded away. */
  async openSettings() {
    await this.driver.findElement(By.css(".settings summary")).click();
  }

  /** Turns a switch of the settings on or off. */
  async flip(name) {
    await this.driver.findElement(By.name(name)).click();
  }

  /** Presses a key, wherever the focus is. */
  async press(key) {
    await this.driver.actions().sendKeys(key).perform();
  }

  /** The element that has the focus: its id, name or part, and whether it shows it. */
  focused() {
    return this.driver.executeScript(() => {
      const host = document.activeElement;
      const element = host.shadowRoot?.activeElement ?? host;
      // A round button is drawn by what follows it.
      const drawn = element.type === "radio" ? element.nextElementSibling : element;
      const { outlineStyle, outlineWidth } = getComputedStyle(drawn);
      return { id: element.id || element.name || element.part.value, visible: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
    });
  }

  /** Fills in a field of the settings. */
  async fill(name, text) {
    await this.driver.findElement(By.name(name)).sendKeys(text);
  }

  /** Chooses from a menu of the settings. */
  async select(name, value) {
    await this.driver.findElement(By.css(`select[name=${name}] option[value="${value}"]`)).click();
  }

  async type(text) {
    await this.driver.findElement(By.id("text")).sendKeys(text);
    await this.click("send");
  }

  /** Waits for a line of this originator that is final and of which the test holds. */
  async says(originator, what, test = () => true, withinMs = PATIENCE_MS) {
    const found = (line) => line.originator === originator && line.final && test(line.text);
    const page = await this.shows(`${originator} says ${what}`, ({ lines }) => lines.some(found), withinMs);
    return page.lines.find(found).text;
  }

  /** Waits until the character has begun to answer, in words and aloud after `since`. Hearing all of it would take long. */
  async answers(since) {
    await this.shows("an answer", ({ lines }) => lines.some(({ originator }) => originator === "bot"));
    await until("the answer is heard", () => this.ears.audible("heard", since));
  }

  /** Waits until the call has ended. */
  ended(withinMs = PATIENCE_MS) {
    return this.shows("the call has ended", ({ callbacks }) => callbacks.some(({ name }) => name === "onHangUp"), withinMs);
  }

  /** What to look at after a failure. */
  async report() {
    const page = await this.read().catch((error) => ({ failed: String(error) }));
    const console = await this.browser.console().catch(() => []);
    const callbacks = (page.callbacks ?? []).map(({ text }) => text);
    return [
      `page: ${JSON.stringify({ ...page, callbacks: undefined })}`,
      ...callbacks.map((text) => `  ${text}`),
      `console:`,
      ...console.map((line) => `  ${line}`),
    ].join("\n");
  }
}
