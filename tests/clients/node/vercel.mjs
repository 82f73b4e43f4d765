// The AI SDK of Vercel, with both of its providers: what its users read when something is refused.

import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

import { CHAT, MODELS, RESPONSES, keyOf, script, sent, test, urlOf } from "./world.mjs";

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

// The default provider sends what the server keeps as references: what the model thought and said, in every turn after the first.
test("vercel: the default provider goes on", async () => {
  const openai = createOpenAI({ baseURL: urlOf("v3"), apiKey: keyOf("all") });
  const weather = tool({
    description: "The weather in a city",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => `Sunny in ${city}`,
  });
  for (const model of MODELS) {
    // A model that is known to think gets its thoughts back; the names here are not OpenAI's.
    for (const forceReasoning of [false, true]) {
      const settings = { model: openai(model), maxRetries: 0, providerOptions: { openai: { forceReasoning } } };
      const messages = [{ role: "user", content: "I am Ann." }];
      await script(model, { text: "Hello, Ann.", thinking: "A greeting. " });
      const first = await generateText({ ...settings, messages });
      messages.push(...first.response.messages, { role: "user", content: "Who am I?" });
      await script(model, { text: "You are Ann." });
      const second = streamText({ ...settings, messages });
      assert.equal(await second.text, "You are Ann.");
      const asked = JSON.stringify(await sent(model));
      assert.ok(asked.includes("Hello, Ann.") && !asked.includes("item_reference"), asked);

      await script(model, { text: "", thinking: "The sky. ", tool: ["weather", '{"city": "Delft"}'] });
      await script(model, { text: "It is sunny." });
      const loop = await generateText({ ...settings, prompt: "Weather?", tools: { weather }, stopWhen: stepCountIs(3) });
      assert.deepEqual([loop.text, loop.steps.length], ["It is sunny.", 2]);
      const told = JSON.stringify(await sent(model));
      assert.ok(told.includes("Sunny in Delft") && !told.includes("item_reference"), told);
    }
  }
});

// It refers to what tells of a search, too, which is nothing for a model.
test("vercel: a character with documents goes on", async () => {
  const openai = createOpenAI({ baseURL: urlOf("v3"), apiKey: keyOf("all") });
  const documents = [{ title: "Lions", text: "The lions eat meat." }];
  const character = { personality: "You are Max.", parameters: { rag_enabled: true, documents } };
  const providerOptions = { openai: { metadata: { svc: { character } } } };
  for (const model of MODELS) {
    const settings = { model: openai(model), maxRetries: 0, providerOptions };
    const messages = [{ role: "user", content: "What do lions eat?" }];
    await script(model, { text: "Meat." });
    const first = await generateText({ ...settings, messages });
    assert.equal(first.text, "Meat.");
    assert.ok(JSON.stringify(first.response.messages).includes("fs_svc_"));
    messages.push(...first.response.messages, { role: "user", content: "And tigers?" });
    await script(model, { text: "Meat, too." });
    assert.equal((await generateText({ ...settings, messages })).text, "Meat, too.");
    const { input, messages: asked } = await sent(model);
    const told = JSON.stringify(input ?? asked);
    assert.ok(told.includes("Meat.") && !told.includes("svc_") && !told.includes("item_reference"), told);
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
