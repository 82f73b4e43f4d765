// The page for everybody: by keyboard alone, on a phone, for screen readers, in light and in dark.

import assert from "node:assert/strict";

import { By, Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { scene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

/** The smallest thing that a finger hits for sure, in CSS pixels (WCAG 2.5.5). */
const TARGET = 44;

const PHONE = { width: 360, height: 740 };

scene("axe finds nothing serious before and in a call, and after an error", { character: "greeter" }, async (stage) => {
  const { page } = stage;
  await accessible(page, "idle");
  await page.click("check");
  await page.shows("what the check found", ({ findings }) => findings.length > 1);
  await page.openSettings();
  await accessible(page, "checked, with the settings open");
  await page.call();
  await page.says("bot", "its greeting");
  await page.type("Hello");
  await page.says("user", "the typed word");
  await page.shows("the quality", ({ quality }) => quality);
  await page.click("mute");
  await accessible(page, "in call, muted");
  await page.click("hang-up");
  await page.ended();
  stage.customer.character = "demo/nobody";
  await page.click("call");
  await page.shows("an error", ({ error }) => error);
  await accessible(page, "error");
});

/** Presses Tab until the element has the focus, and checks that it is to be seen wherever it goes. */
async function tabTo(page, wanted, back = false) {
  for (let presses = 0; presses < 20; presses += 1) {
    const { id, visible } = await page.focused();
    if (presses > 0) assert.ok(visible, `the focus on ${id} is not to be seen`);
    if (presses > 0 && id === wanted) return;
    if (back) await page.driver.actions().keyDown(Key.SHIFT).sendKeys(Key.TAB).keyUp(Key.SHIFT).perform();
    else await page.press(Key.TAB);
  }
  throw new Error(`${wanted} is not reached by Tab`);
}

scene("a call by keyboard alone", {}, async ({ page }) => {
  const checked = (name) => page.driver.executeScript("return document.getElementsByName(arguments[0])[0].checked", name);
  await tabTo(page, "mode");
  await tabTo(page, "check");
  await page.press(Key.ENTER);
  await page.shows("what the check found", ({ findings }) => findings.length > 1);
  await tabTo(page, "settings-summary");
  await page.press(Key.ENTER);
  await tabTo(page, "wakeLock");
  await page.press(Key.SPACE);
  assert.equal(await checked("wakeLock"), false);
  await tabTo(page, "personRole");
  await page.press("Ada");
  await tabTo(page, "call", true);
  await page.press(Key.ENTER);
  await page.shows("the call is connected", ({ state }) => state === "ongoing");
  // The button that was pressed is gone; the focus is at the next useful one.
  assert.equal((await page.focused()).id, "mute");
  await page.press(Key.SPACE);
  await page.shows("the microphone is muted", ({ muted }) => muted);
  await tabTo(page, "text");
  await page.press("What is your name?");
  await page.press(Key.ENTER);
  await page.says("user", "the typed words", (text) => text === "What is your name?");
  assert.equal((await page.read()).lines[0].role, "Ada");
  await tabTo(page, "microphone");
  await page.press(Key.ARROW_DOWN);
  await until("another microphone", () =>
    page.driver.executeScript("const { dataset, selectedIndex, value } = document.getElementById('microphone'); return selectedIndex === 1 && dataset.inUse === value"),
  );
  await tabTo(page, "hang-up", true);
  await page.press(Key.ENTER);
  await page.ended();
  assert.equal((await page.focused()).id, "call");
});

/** What sticks out of the page sideways, and what is too small for a finger. */
function measure(target) {
  const name = (element) => element.id || element.name || element.localName;
  const controls = [...document.querySelectorAll("button, select, summary, input, textarea")].filter(
    (element) => element.checkVisibility(),
  );
  const box = (element) => {
    // What is labelled by its surroundings is hit there.
    const label = element.type === "radio" || element.type === "checkbox" ? element.closest("label") : element;
    return label.getBoundingClientRect();
  };
  return {
    width: innerWidth,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    small: controls.filter((element) => Math.min(box(element).width, box(element).height) < target).map(name),
    outside: controls.filter((element) => box(element).left < 0 || box(element).right > innerWidth).map(name),
  };
}

const FITS = { width: PHONE.width, overflow: 0, small: [], outside: [] };

scene("a phone shows all of the page, and fingers hit it", { character: "greeter", browser: { phone: PHONE } }, async ({ page }) => {
  const fits = async () => assert.deepEqual(await page.driver.executeScript(measure, TARGET), FITS);
  await fits();
  await page.openSettings();
  await page.click("check");
  await page.shows("what the check found", ({ findings }) => findings.length > 1);
  await fits();
  await page.call();
  await page.says("bot", "its greeting");
  await page.shows("the quality", ({ quality }) => quality);
  await fits();
  for (const end of ["0", "document.documentElement.scrollHeight"]) {
    const reachable = await page.driver.executeScript(`
      scrollTo(0, ${end});
      const { left, top, width, height } = document.getElementById("hang-up").getBoundingClientRect();
      return document.elementFromPoint(left + width / 2, top + height / 2)?.id;
    `);
    assert.equal(reachable, "hang-up", "the button to hang up is out of reach");
  }
  await page.click("hang-up");
  await page.ended();
});

/** Runs in the page: the share of the pixels that differ between two pictures, as far as the smaller one goes. */
function difference(one, other, done) {
  const load = async (png) => {
    const picture = new Image();
    picture.src = `data:image/png;base64,${png}`;
    await picture.decode();
    return picture;
  };
  const compare = (pictures) => {
    const width = Math.min(...pictures.map((picture) => picture.width));
    const height = Math.min(...pictures.map((picture) => picture.height));
    const [a, b] = pictures.map((picture) => {
      const context = new OffscreenCanvas(width, height).getContext("2d");
      context.drawImage(picture, 0, 0);
      return new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    });
    return a.filter((pixel, at) => pixel !== b[at]).length / a.length;
  };
  Promise.all([one, other].map(load)).then(compare).then(done, (error) => done(String(error)));
}

/** What a visitor must see in high contrast: an element, what puts it into either state, how much of it differs. */
const STATES = [
  ["[name=wakeLock]", "element.checked = on", 0.2],
  ["[name=mode] + span", "element.previousElementSibling.checked = on", 0.2],
  ["#mute", "element.hidden = false; element.setAttribute('aria-pressed', on)", 0.5],
  ["#microphone-level", "element.style.setProperty('--level', on ? 1 : 0)", 0.5],
];

scene("high contrast shows what is on and what is off", {}, async ({ browser, page }) => {
  await browser.forceColors(true);
  try {
    assert.ok(await page.driver.executeScript("return matchMedia('(forced-colors: active)').matches"), "no colours are forced");
    await page.openSettings();
    for (const [selector, change, share] of STATES) {
      const element = await page.driver.findElement(By.css(selector));
      const picture = async (on) => {
        await page.driver.executeScript(`const [element, on] = arguments; ${change}`, element, on);
        return element.takeScreenshot();
      };
      const [on, off] = [await picture(true), await picture(false)];
      const differs = await page.driver.executeAsyncScript(difference, on, off);
      assert.ok(differs >= share, `${selector}: ${differs} of it tells on from off`);
    }
  } finally {
    await browser.forceColors(false);
  }
});
