// What is refused, what fails, and what the client does about it by itself.

import assert from "node:assert/strict";

import OpenAI from "openai";

import { CHAT, MODELS, RESPONSES, SLOWNESS, all, asked, client, gone, script, test, throws } from "./world.mjs";

const messages = [{ role: "user", content: "Hello" }];
const chat = (it, more = {}, options) => it.chat.completions.create({ model: CHAT, messages, ...more }, options);
const respond = (it, more = {}, options) => it.responses.create({ model: RESPONSES, input: "Hello", ...more }, options);
// The kinds of error of the public APIs.
const TYPES = { 400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error" };
const pairs = [
  [CHAT, chat],
  [RESPONSES, respond],
];

test("refusals", async () => {
  const count = async () => Promise.all(MODELS.map(async (model) => (await asked(model)).length));
  const before = await count();
  const cases = [
    [OpenAI.AuthenticationError, 401, "invalid_api_key", "nobody", {}],
    [OpenAI.PermissionDeniedError, 403, "quota_kind_not_allowed", "speech", {}],
    [OpenAI.RateLimitError, 429, "quota_exhausted", "spent", {}],
    [OpenAI.BadRequestError, 400, "model_not_found", "all", { model: "gpt-none" }],
    [OpenAI.BadRequestError, 400, "invalid_parameters", "all", { metadata: { svc: { routing: "x" } } }],
  ];
  for (const [kind, status, code, key, more] of cases) {
    for (const ask of [chat, respond]) {
      const error = await throws(kind, () => ask(client({ key }), more));
      assert.equal(error.status, status);
      assert.match(error.requestID, /./);
      assert.equal(error.message, `${status} ${error.error.message}`);
      assert.ok(error.error.message.split(" ").length > 2, error.message);
      assert.deepEqual([error.code, error.type], [code, TYPES[status]]);
    }
  }
  assert.deepEqual(await count(), before, "no model was asked");
});

test("refusal by the model", async () => {
  for (const [model, ask] of pairs) {
    await script(model, { fault: { status: 400 } });
    const error = await throws(OpenAI.BadRequestError, () => ask(client()));
    assert.deepEqual([error.message, error.code, error.type], ["400 scripted refusal", "upstream_rejected", "scripted"]);
  }
});

test("retries", async () => {
  for (const [model, ask] of pairs) {
    for (const [fault, least] of [[{ rate_limited: { retry_after: 1 } }, 1_000], [{ status: 500 }, 0]]) {
      const before = (await asked(model)).length;
      await script(model, { fault });
      const begin = performance.now();
      assert.equal((await ask(client({ maxRetries: 2 }))).model, model);
      assert.equal((await asked(model)).length - before, 2);
      // The model's Retry-After reaches the client, who keeps to it.
      assert.ok(performance.now() - begin >= least);
    }
  }
  await script(CHAT, { fault: { status: 503 } });
  const chunks = await all(await chat(client({ maxRetries: 1 }), { stream: true }));
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  // And in the end the client says why.
  await script(CHAT, { fault: { status: 500 } });
  const failed = await throws(OpenAI.InternalServerError, () => chat(client()));
  assert.deepEqual([failed.status, failed.code, failed.message], [502, "upstream_error", "502 The model failed (status 500)"]);
  await script(CHAT, { fault: { rate_limited: { retry_after: 7 } } });
  const limited = await throws(OpenAI.RateLimitError, () => chat(client()));
  assert.deepEqual([limited.code, limited.headers.get("retry-after")], ["upstream_rate_limited", "7"]);
  // That was for one request; others are asked.
  assert.equal((await chat(client())).model, CHAT);
});

test("time-out", async () => {
  for (const [model, ask] of pairs) {
    await script(model, { fault: { stall: { after: 0 } } });
    // Long enough for the request to get to the model.
    await throws(OpenAI.APIConnectionTimeoutError, () => ask(client({ timeout: Math.ceil(300 * SLOWNESS) })));
    await gone(model);
  }
  const nobody = new OpenAI({ baseURL: "http://127.0.0.1:9/v3", apiKey: "x", maxRetries: 0 });
  await throws(OpenAI.APIConnectionError, () => chat(nobody));
});

test("failure in the middle", async () => {
  for (const model of MODELS) {
    for (const ask of [chat, respond]) {
      await script(model, { fault: { cut: { after: 6 } } });
      const said = [];
      const read = async () => {
        for await (const event of await ask(client(), { model, stream: true })) said.push(event);
      };
      const error = await throws(OpenAI.APIError, read);
      assert.ok(said.length > 2);
      assert.deepEqual([error.code, error.message], ["upstream_cut", "The model's answer was cut off"]);
    }
  }
});

test("cancelling", async () => {
  for (const model of MODELS) {
    for (const ask of [chat, respond]) {
      // More than is said until the model knows that nobody listens.
      await script(model, { text: "word ".repeat(400 * SLOWNESS), between_delay_ms: 20 });
      let count = 0;
      for await (const _ of await ask(client(), { model, stream: true })) {
        count += 1;
        if (count === 6) break;
      }
      await gone(model);
      // With a signal, when the model has been asked and before there is an answer.
      await script(model, { fault: { stall: { after: 0 } } });
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 200 * SLOWNESS);
      await throws(OpenAI.APIUserAbortError, () => ask(client(), { model }, { signal: stop.signal }));
      await gone(model);
    }
  }
});
