// Chat completions, over models of both APIs.

import assert from "node:assert/strict";

import { zodFunction, zodResponseFormat } from "openai/helpers/zod";

import { Verdict, Weather, verdict } from "./shapes.mjs";
import { CHAT, MODELS, RESPONSES, all, client, script, sent, test } from "./world.mjs";

const messages = [{ role: "user", content: "Hello" }];
const tools = [zodFunction({ name: "weather", parameters: Weather })];

test("chat completion", async () => {
  for (const model of MODELS) {
    await script(model, { text: "Grüße, 你好 👋🏽" });
    const { data, response } = await client().chat.completions.create({ model, messages }).withResponse();
    assert.equal(data.choices[0].message.content, "Grüße, 你好 👋🏽");
    assert.deepEqual([data.choices[0].finish_reason, data.model, data.object], ["stop", model, "chat.completion"]);
    assert.deepEqual([data.usage.prompt_tokens, data.usage.completion_tokens, data.usage.total_tokens], [12, 3, 15]);
    assert.equal(data._request_id, response.headers.get("x-request-id"));
  }
});

test("chat stream", async () => {
  for (const model of MODELS) {
    await script(model, { text: "One two three.", between_delay_ms: 5 });
    const options = { stream: true, stream_options: { include_usage: true } };
    const chunks = await all(await client().chat.completions.create({ model, messages, ...options }));
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "One two three.");
    const last = chunks.pop();
    assert.deepEqual([last.choices, last.usage.completion_tokens], [[], 3]);
    assert.ok(chunks.every((chunk) => chunk.usage === null && chunk.id === last.id));
  }
});

test("chat stream helper", async () => {
  for (const model of MODELS) {
    await script(model, { text: "One two three." });
    const snapshots = [];
    const stream = client().chat.completions.stream({ model, messages });
    stream.on("content", (_, snapshot) => snapshots.push(snapshot));
    const final = await stream.finalChatCompletion();
    assert.deepEqual(snapshots, ["One ", "One two ", "One two three."]);
    assert.deepEqual([final.choices[0].message.content, final.choices[0].finish_reason], ["One two three.", "stop"]);
  }
});

test("chat tools", async () => {
  for (const model of MODELS) {
    for (const streamed of [false, true]) {
      await script(model, { text: "", tool: ["weather", '{"city": "Zürich"}'] });
      const question = { model, messages, tools, tool_choice: "required" };
      const completions = client().chat.completions;
      const answer = await (streamed
        ? completions.stream(question).finalChatCompletion()
        : completions.parse(question));
      const [choice] = answer.choices;
      assert.equal(choice.finish_reason, "tool_calls");
      const [call] = choice.message.tool_calls;
      assert.deepEqual([call.function.name, call.function.parsed_arguments], ["weather", { city: "Zürich" }]);
      const body = await sent(model);
      const tool = body.tools[0].function ?? body.tools[0];
      assert.deepEqual([tool.name, tool.strict, body.tool_choice], ["weather", true, "required"]);
    }
  }
});

test("chat run of tools", async () => {
  // The client calls the tool and asks again by itself.
  for (const model of MODELS) {
    await script(model, { text: "", tool: ["weather", '{"city": "Zürich"}'] });
    await script(model, { text: "Sunny." });
    const called = [];
    const run = (arguments_) => {
      called.push(arguments_.city);
      return "sun";
    };
    const described = { name: "weather", parameters: Weather, description: "The weather.", function: run };
    const runner = client().chat.completions.runTools({ model, messages, tools: [zodFunction(described)], stream: true });
    assert.equal(await runner.finalContent(), "Sunny.");
    assert.deepEqual(called, ["Zürich"]);
    const asked = JSON.stringify(await sent(model));
    assert.ok(asked.includes("Zürich") && asked.includes("sun"), asked);
  }
});

test("chat structured output", async () => {
  for (const model of MODELS) {
    const question = { model, messages, response_format: zodResponseFormat(Verdict, "verdict") };
    await script(model, { text: JSON.stringify(verdict) });
    const answer = await client().chat.completions.parse(question);
    assert.deepEqual(answer.choices[0].message.parsed, verdict);
    const body = await sent(model);
    const schema = body.response_format?.json_schema ?? body.text.format;
    assert.deepEqual([schema.name, schema.strict], ["verdict", true]);
    await script(model, { text: JSON.stringify(verdict) });
    const streamed = await client().chat.completions.stream(question).finalChatCompletion();
    assert.deepEqual(streamed.choices[0].message.parsed, verdict);
  }
});

test("chat reasoning", async () => {
  for (const model of MODELS) {
    const effort = async () => {
      const body = await sent(model);
      return body.reasoning_effort ?? body.reasoning.effort;
    };
    await script(model, { text: "Yes.", thinking: "Hm, let me see. " });
    const answer = await client().chat.completions.create({ model, messages, reasoning_effort: "low" });
    assert.equal(answer.choices[0].message.content, "Yes.");
    assert.equal(answer.choices[0].message.reasoning_content, "Hm, let me see. ");
    assert.equal(await effort(), "low");
    await script(model, { text: "Yes.", thinking: "Hm, let me see. " });
    const question = { model, messages, stream: true, reasoning: { effort: "high" } };
    const chunks = await all(await client().chat.completions.create(question));
    const thought = chunks.map((chunk) => chunk.choices[0]?.delta.reasoning_content ?? "").join("");
    assert.equal(thought, "Hm, let me see. ");
    assert.equal(await effort(), "high");
  }
});

test("chat with a character and a fallback", async () => {
  // To the client's types `metadata` is a map of strings, and there is no `fallback_model`; it sends what it is given.
  const character = { personality: "You are {{ robot_name }}.", parameters: { robot_name: "Max" } };
  const metadata = { trace: "t-1", svc: { character } };
  await script(CHAT, { fault: { status: 500 } });
  const question = { model: CHAT, messages, metadata, fallback_model: RESPONSES };
  const answer = await client().chat.completions.create(question);
  assert.equal(answer.model, RESPONSES);
  const body = await sent(RESPONSES);
  assert.deepEqual(body.metadata, { trace: "t-1" });
  assert.ok(body.instructions.includes("You are Max."), body.instructions);
  assert.ok(!("fallback_model" in body));
});

test("list of models", async () => {
  const names = (await all(client().models.list())).map((model) => model.id);
  assert.ok(MODELS.every((model) => names.includes(model)), String(names));
  const few = await all(client({ key: "chat" }).models.list());
  assert.deepEqual(few.map((model) => model.id), [CHAT]);
  for (const name of [CHAT, "builtin/extractive"]) assert.equal((await client().models.retrieve(name)).id, name);
});
