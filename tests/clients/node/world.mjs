// The server and the scripted upstream, as the test that starts this tells of them, and the runner of the cases.

import assert from "node:assert/strict";

import OpenAI from "openai";
import { VERSION } from "openai/version";

import { SLOWNESS } from "../../browser/stage/waiting.mjs";

export { SLOWNESS };

const WORLD = JSON.parse(process.argv[2]);
export const CHAT = "scripted-chat";
export const RESPONSES = "scripted-responses";
export const MODELS = [CHAT, RESPONSES];
// The API of the upstream that has a model.
const API = { [CHAT]: "chat", [RESPONSES]: "responses" };

const cases = [];

/** Adds a case; it passes unless it throws. */
export const test = (name, body) => cases.push({ name, body });

/** A client as its users make it. It tries once, unless a case wants to see it try again. */
export const client = ({ key = "all", version = "v3", ...options } = {}) =>
  new OpenAI({ baseURL: urlOf(version), apiKey: keyOf(key), maxRetries: 0, ...options });

/** Where a version of the interfaces is. */
export const urlOf = (version) => `${WORLD.url}/${version}`;

/** The key of this name; a name that is none is a key itself. */
export const keyOf = (key) => WORLD.keys[key] ?? key;

/** What the upstream answers the next request for a model, or of an API, with. */
export async function script(model, answer) {
  const body = JSON.stringify({ api: API[model] ?? model, script: answer });
  const response = await fetch(`${WORLD.control}/script`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  assert.equal(response.status, 200, await response.text());
}

/** The requests for a model so far: `body`, and `end`: `answered`, `disconnected` or null. */
export async function asked(model) {
  const response = await fetch(`${WORLD.control}/asked?api=${API[model] ?? model}`);
  return response.json();
}

/** The body of the last request for a model. */
export const sent = async (model) => (await asked(model)).at(-1).body;

/** The error of exactly this class that a call throws. */
export async function throws(kind, call) {
  try {
    await call();
  } catch (error) {
    assert.equal(error.constructor, kind, String(error));
    return error;
  }
  assert.fail(`no ${kind.name} was thrown`);
}

/** The last request for a model ends because its client went away, within three seconds on a machine of ordinary speed. */
export async function gone(model) {
  for (const until = Date.now() + 3_000 * SLOWNESS; Date.now() < until; ) {
    const { end } = (await asked(model)).at(-1);
    if (end) return assert.equal(end, "disconnected", model);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail("the model goes on");
}

/** Everything that a stream brings. */
export async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Runs every case, says how each went, and ends the process. */
export async function run() {
  let failed = 0;
  for (const { name, body } of cases) {
    const begin = performance.now();
    let outcome = "ok    ";
    // What a case before this one has left over is not for this one.
    await fetch(`${WORLD.control}/script`, { method: "DELETE" });
    try {
      await body();
    } catch (error) {
      failed += 1;
      outcome = "FAILED";
      console.log(error);
    }
    console.log(`node ${VERSION} ${outcome} ${name} (${((performance.now() - begin) / 1000).toFixed(2)} s)`);
  }
  process.exit(failed ? 1 : 0);
}
