// The console in a browser, as somebody uses it.

import { By, Key } from "selenium-webdriver";

import { until } from "./waiting.mjs";

const HEADERS = { "X-Colloquy-Console": "http" };

export class ConsolePage {
  constructor(browser, url) {
    this.browser = browser;
    this.driver = browser.driver;
    this.url = `${url}/console/`;
  }

  /** Forgets sessions of other scenes, which share the browser. */
  async forget() {
    await this.driver.get(new URL("/health", this.url).href);
    await this.driver.manage().deleteAllCookies();
  }

  async open(rest = "") {
    await this.driver.get(this.url + rest);
    await this.driver.executeScript(`
      window.uncaught = [];
      addEventListener("error", ({ error, message }) => window.uncaught.push(String(error ?? message)));
      addEventListener("unhandledrejection", ({ reason }) => window.uncaught.push(String(reason)));
      window.violations = [];
      addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => window.violations.push(violatedDirective + " " + blockedURI));
    `);
  }

  /** Returns the violations of the content security policy since `open`. */
  violations() {
    return this.driver.executeScript("return window.violations");
  }

  text() {
    return this.driver.executeScript("return document.body.innerText");
  }

  /** Waits until the page says this. */
  async says(words, withinMs) {
    try {
      await until(`the console says ${words}`, async () => (await this.text()).includes(words), { withinMs });
    } catch (error) {
      error.message += `\n\nIt says:\n${await this.text()}`;
      throw error;
    }
  }

  /** Waits until the page does not say this any more. */
  saysNoMore(words) {
    return until(`the console says no more ${words}`, async () => !(await this.text()).includes(words));
  }

  /** Clicks the button or link with this name, in the topmost dialog if one is open. */
  async click(name) {
    const clicked = () => this.driver.executeScript((wanted) => {
      const dialogs = [...document.querySelectorAll("dialog[open]")];
      const within = dialogs.at(-1) ?? document;
      const named = (element) => (element.getAttribute("aria-label") ?? element.innerText).replaceAll(/\s+/g, " ").trim() === wanted;
      const found = [...within.querySelectorAll("button, a")].find((element) => named(element) && element.checkVisibility());
      found?.click();
      return found !== undefined;
    }, name);
    await until(`there is ${name} to click`, clicked);
  }

  /** Focuses the button, link or tab with this name and presses a key there, Enter by default. */
  async press(name, key = Key.ENTER) {
    const focused = () => this.driver.executeScript((wanted) => {
      const named = (element) => (element.getAttribute("aria-label") ?? element.innerText).replaceAll(/\s+/g, " ").trim() === wanted;
      const within = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
      [...within.querySelectorAll("button, a")].find((element) => named(element) && element.checkVisibility())?.focus();
      return named(document.activeElement);
    }, name);
    await until(`there is ${name} to focus`, focused);
    await this.driver.actions().sendKeys(key).perform();
  }

  /** Waits until the element with this name, or with this tag, has the focus. */
  focuses(name) {
    const focused = () => this.driver.executeScript(() => {
      const { ariaLabel, innerText, tagName } = document.activeElement;
      return [tagName.toLowerCase(), ariaLabel ?? innerText.trim()];
    });
    return until(`the focus is on ${name}`, async () => (await focused()).includes(name));
  }

  field(name) {
    return until(`there is a field ${name}`, async () => {
      const fields = await this.driver.findElements(By.css(`[name="${name}"]`));
      return fields.at(-1);
    });
  }

  /** Replaces the text of a field. */
  async enter(name, text) {
    const field = await this.field(name);
    // After WebDriver's `clear`, a render restores the old text before the page learns of it.
    await this.driver.executeScript((cleared) => {
      cleared.value = "";
      cleared.dispatchEvent(new Event("input", { bubbles: true }));
    }, field);
    await field.sendKeys(text);
  }

  /** Finds the content of the editor of a text, which is in a shadow root. */
  editor() {
    const find = () => this.driver.executeScript("return document.querySelector('.text-editor')?.shadowRoot?.querySelector('.cm-content')");
    return until("there is an editor", find);
  }

  /** Replaces the text of the editor. */
  async write(text) {
    const content = await this.editor();
    await this.driver.executeScript((field) => field.focus(), content);
    await this.driver.actions().keyDown(Key.CONTROL).sendKeys("a").keyUp(Key.CONTROL).sendKeys(text).perform();
  }

  /** Returns the text of the editor, if it is short. */
  async written() {
    return this.driver.executeScript((field) => [...field.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n"), await this.editor());
  }

  /** Chooses an entry of a menu by its text. */
  async choose(name, text) {
    const field = await this.field(name);
    const options = await field.findElements(By.css("option"));
    const texts = await Promise.all(options.map((option) => option.getText()));
    await options[texts.indexOf(text)].click();
  }

  /** Follows the link to a path below `/console`; a query may follow the path. */
  async follow(path) {
    const followed = () => this.driver.executeScript((to) => {
      const found = [...document.querySelectorAll("main a")].find(({ pathname }) => pathname === to);
      found?.click();
      return found !== undefined;
    }, `/console/${path}`);
    await until(`there is a link to ${path}`, followed);
  }

  async signIn(key) {
    await this.enter("api_key", key);
    await this.click("Sign in");
  }

  /** Sends a request to the API as the page does, and returns its status. */
  ask(method, route) {
    const send = (sent, to, headers, done) => fetch(to, { method: sent, headers }).then(({ status }) => done(status), (error) => done(String(error)));
    return this.driver.executeAsyncScript(send, method, route, HEADERS);
  }
}
