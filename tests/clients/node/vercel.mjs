// The AI SDK of Vercel, with both of its providers: what its users read when something is refused.

import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, streamText } from "ai";

import { CHAT, MODELS, RESPONSES, keyOf, script, test, urlOf } from "./world.mjs";

// Each way in which this client asks: the name of its provider, and a model there.
const ways = (key) => {
  const settings = { baseURL: urlOf("v3"), apiKey: keyOf(key) };
  const openai = createOpenAI(settings);
  const compatible = createOpenAICompatible({ name: "colloquy", ...settings });
  return { chat: openai.chat, responses: openai.responses, compatible: (model) => compatible(model) };
};

test("vercel: text and stream", async () => {
  for (const model of MODELS) {
    for (const [way, of] of Object.entries(ways("all"))) {
      await script(model, { text: "One two three." });
      const { text, usage } = await generateText({ model: of(model), prompt: "Hello", maxRetries: 0 });
      assert.deepEqual([text, usage.inputTokens], ["One two three.", 12], `${way} ${model}`);
      await script(model, { text: "One two three." });
      const pieces = [];
      const streamed = streamText({ model: of(model), prompt: "Hello", maxRetries: 0 });
      for await (const piece of streamed.textStream) pieces.push(piece);
      assert.equal(pieces.join(""), "One two three.", `${way} ${model}`);
      assert.equal(await streamed.finishReason, "stop");
    }
  }
});

test("vercel: messages of errors", async () => {
  const failing = async (model, text) => {
    const error = await generateText({ model, prompt: "Hello", maxRetries: 0 }).then(
      () => assert.fail("no error"),
      (error) => error,
    );
    assert.ok(APICallError.isInstance(error), String(error));
    assert.match(error.message, text);
    return error;
  };
  const cases = [
    ["nobody", CHAT, 401, /^Invalid API key$/],
    ["speech", CHAT, 403, /^The quota is not for this interface$/],
    ["spent", RESPONSES, 429, /^The request may need more tokens than the quota has$/],
    ["all", "gpt-none", 400, /^there is no model gpt-none$/],
  ];
  for (const [key, model, status, text] of cases) {
    for (const of of Object.values(ways(key))) {
      assert.equal((await failing(of(model), text)).statusCode, status);
    }
  }
  // And those of the models.
  for (const of of Object.values(ways("all"))) {
    await script(CHAT, { fault: { status: 400 } });
    assert.equal((await failing(of(CHAT), /^scripted refusal$/)).statusCode, 400);
  }
});
