// The console in a browser, as somebody uses it.

import { By, Key } from "selenium-webdriver";

import { untilInPage } from "./waiting.mjs";

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

  /** Waits in the page until `look` finds something, for which it gets what is given. */
  #until(what, look, given, options) {
    return untilInPage(this.driver, what, look, given, options);
  }

  /** Waits until the page says this. */
  async says(words, withinMs) {
    const said = (wanted) => document.body.innerText.includes(wanted);
    try {
      await this.#until(`the console says ${words}`, said, [words], { withinMs });
    } catch (error) {
      error.message += `\n\nIt says:\n${await this.text()}`;
      throw error;
    }
  }

  /** Waits until the page does not say this any more. */
  saysNoMore(words) {
    return this.#until(`the console says no more ${words}`, (unwanted) => !document.body.innerText.includes(unwanted), [words]);
  }

  /** Clicks the button or link with this name, in the topmost dialog if one is open. */
  click(name) {
    const clicked = (wanted) => {
      const dialogs = [...document.querySelectorAll("dialog[open]")];
      const within = dialogs.at(-1) ?? document;
      const named = (element) => (element.getAttribute("aria-label") ?? element.innerText).replaceAll(/\s+/g, " ").trim() === wanted;
      const found = [...within.querySelectorAll("button, a")].find((element) => named(element) && element.checkVisibility());
      found?.click();
      return found !== undefined;
    };
    return this.#until(`there is ${name} to click`, clicked, [name]);
  }

  /** Focuses the button, link or tab with this name and presses a key there, Enter by default. */
  async press(name, key = Key.ENTER) {
    const focused = (wanted) => {
      const named = (element) => (element.getAttribute("aria-label") ?? element.innerText).replaceAll(/\s+/g, " ").trim() === wanted;
      const within = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
      [...within.querySelectorAll("button, a")].find((element) => named(element) && element.checkVisibility())?.focus();
      return named(document.activeElement);
    };
    await this.#until(`there is ${name} to focus`, focused, [name]);
    await this.driver.actions().sendKeys(key).perform();
  }

  /** Waits until the element with this name, or with this tag, has the focus. */
  focuses(name) {
    const focused = (wanted) => {
      const { ariaLabel, innerText, tagName } = document.activeElement;
      return [tagName.toLowerCase(), ariaLabel ?? innerText.trim()].includes(wanted);
    };
    return this.#until(`the focus is on ${name}`, focused, [name]);
  }

  field(name) {
    return this.#until(`there is a field ${name}`, (wanted) => [...document.querySelectorAll(`[name="${wanted}"]`)].at(-1), [name]);
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
    return this.#until("there is an editor", () => document.querySelector(".text-editor")?.shadowRoot?.querySelector(".cm-content"));
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
  follow(path) {
    const followed = (to) => {
      const found = [...document.querySelectorAll("main a")].find(({ pathname }) => pathname === to);
      found?.click();
      return found !== undefined;
    };
    return this.#until(`there is a link to ${path}`, followed, [`/console/${path}`]);
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
