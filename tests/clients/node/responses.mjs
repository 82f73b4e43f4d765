// Responses, over models of both APIs.

import assert from "node:assert/strict";

import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";

import { Verdict, Weather, verdict } from "./shapes.mjs";
import { CHAT, MODELS, RESPONSES, all, client, script, sent, test, throws } from "./world.mjs";

const tools = [zodResponsesFunction({ name: "weather", parameters: Weather })];

test("response", async () => {
  for (const model of MODELS) {
    await script(model, { text: "Grüße, 你好 👋🏽" });
    const limits = { instructions: "Be brief.", max_output_tokens: 50, metadata: { trace: "t-1" } };
    const answer = await client().responses.create({ model, input: "Hello", ...limits });
    assert.equal(answer.output_text, "Grüße, 你好 👋🏽");
    assert.deepEqual([answer.status, answer.model, answer.error], ["completed", model, null]);
    assert.deepEqual([answer.instructions, answer.max_output_tokens], ["Be brief.", 50]);
    assert.deepEqual(answer.metadata, { trace: "t-1" });
    assert.deepEqual([answer.usage.input_tokens, answer.usage.output_tokens], [12, 3]);
  }
});

test("response stream", async () => {
  for (const model of MODELS) {
    await script(model, { text: "One two three.", thinking: "Hm. ", between_delay_ms: 5 });
    const events = await all(await client().responses.create({ model, input: "Hello", stream: true }));
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    assert.deepEqual(events.slice(0, 2).map((event) => event.type), ["response.created", "response.in_progress"]);
    const said = (type) => events.filter((event) => event.type === type).map((event) => event.delta).join("");
    assert.equal(said("response.output_text.delta"), "One two three.");
    assert.equal(said("response.reasoning_text.delta"), "Hm. ");
    assert.equal(events.at(-1).type, "response.completed");
    assert.equal(events.at(-1).response.id, events[0].response.id);
  }
});

test("response stream helper", async () => {
  for (const model of MODELS) {
    await script(model, { text: "One two three.", thinking: "Hm. " });
    const snapshots = [];
    const stream = client().responses.stream({ model, input: "Hello" });
    stream.on("response.output_text.delta", (event) => snapshots.push(event.snapshot));
    const final = await stream.finalResponse();
    assert.deepEqual(snapshots, ["One ", "One two ", "One two three."]);
    assert.equal(final.output_text, "One two three.");
    assert.deepEqual(final.output.map((item) => item.type), ["reasoning", "message"]);
    assert.equal(final.output[0].content[0].text, "Hm. ");
  }
});

test("response tools", async () => {
  for (const model of MODELS) {
    for (const streamed of [false, true]) {
      await script(model, { text: "", tool: ["weather", '{"city": "Zürich"}'] });
      const question = { model, input: "Weather?", tools };
      const { responses } = client();
      const answer = await (streamed ? responses.stream(question).finalResponse() : responses.parse(question));
      const [call] = answer.output;
      assert.deepEqual([call.type, call.name, call.parsed_arguments], ["function_call", "weather", { city: "Zürich" }]);
      await script(model, { text: "Sunny." });
      const input = [{ type: "function_call_output", call_id: call.call_id, output: "sun" }];
      const next = await responses.create({ model, input, previous_response_id: answer.id });
      assert.equal(next.output_text, "Sunny.");
    }
  }
});

test("response structured output", async () => {
  for (const model of MODELS) {
    const question = { model, input: "Well?", text: { format: zodTextFormat(Verdict, "verdict") } };
    await script(model, { text: JSON.stringify(verdict) });
    assert.deepEqual((await client().responses.parse(question)).output_parsed, verdict);
    const body = await sent(model);
    const schema = body.response_format?.json_schema ?? body.text.format;
    assert.deepEqual([schema.name, schema.strict], ["verdict", true]);
    await script(model, { text: JSON.stringify(verdict) });
    const streamed = await client().responses.stream(question).finalResponse();
    assert.deepEqual(streamed.output_parsed, verdict);
  }
});

test("response reasoning", async () => {
  for (const model of MODELS) {
    await script(model, { text: "Yes.", thinking: "Hm, let me see. " });
    const answer = await client().responses.create({ model, input: "Well?", reasoning: { effort: "low" } });
    assert.deepEqual(answer.output.map((item) => item.type), ["reasoning", "message"]);
    assert.equal(answer.output[0].content[0].text, "Hm, let me see. ");
    const body = await sent(model);
    assert.equal(body.reasoning_effort ?? body.reasoning.effort, "low");
  }
});

test("response with knowledge", async () => {
  const documents = [{ title: "Lions", text: "The lions eat meat at noon." }];
  const character = { personality: "You are Max.", parameters: { rag_enabled: true, documents } };
  const question = { input: "What do lions eat?", metadata: { svc: { character } } };
  const expected = ["reasoning", "file_search_call", "reasoning", "message"];
  for (const model of MODELS) {
    const answer = await client().responses.create({ model, ...question });
    assert.deepEqual(answer.output.map((item) => item.type), expected);
    assert.equal(answer.output[1].results[0].text, "The lions eat meat at noon.");
    const kinds = [];
    const stream = client().responses.stream({ model, ...question });
    stream.on("event", (event) => kinds.push(event.type));
    const final = await stream.finalResponse();
    const steps = ["in_progress", "searching", "completed"].map((step) => `response.file_search_call.${step}`);
    assert.deepEqual(kinds.filter((kind) => kind.includes("file_search")), steps);
    assert.deepEqual(final.output.map((item) => item.type), expected);
    assert.equal(final.output[1].results[0].filename, "Lions");
  }
});

test("response of a fallback", async () => {
  for (const stream of [false, true]) {
    await script(RESPONSES, { fault: { status: 503 } });
    const question = { model: RESPONSES, input: "Hello", fallback_model: CHAT, stream };
    const answer = await client().responses.create(question);
    const response = stream ? (await all(answer)).at(-1).response : answer;
    assert.equal(response.model, CHAT);
  }
});

test("stored responses", async () => {
  const { responses } = client();
  for (const model of MODELS) {
    const first = await responses.create({ model, input: "I am Ann." });
    const second = await responses.create({ model, input: "Who am I?", previous_response_id: first.id });
    assert.equal(second.previous_response_id, first.id);
    const asked = JSON.stringify(await sent(model));
    assert.ok(asked.includes("I am Ann.") && asked.includes("Who am I?"), asked);
    const read = await responses.retrieve(second.id);
    assert.deepEqual([read.id, read.output_text], [second.id, second.output_text]);
    const events = await all(await responses.retrieve(second.id, { stream: true }));
    assert.deepEqual([events[0].type, events.at(-1).type], ["response.created", "response.completed"]);
    assert.equal(events.at(-1).response.id, second.id);
    const rest = await all(await responses.retrieve(second.id, { stream: true, starting_after: 3 }));
    assert.deepEqual(rest, events.slice(4));
    const [item] = await all(responses.inputItems.list(second.id));
    assert.deepEqual([item.role, item.content[0].text], ["user", "Who am I?"]);
    await responses.delete(first.id);
    await throws(OpenAI.NotFoundError, () => responses.retrieve(first.id));
    const goOn = { model, input: "Go on.", previous_response_id: first.id };
    await throws(OpenAI.BadRequestError, () => responses.create(goOn));
  }
});

test("input tokens", async () => {
  const counted = await client().responses.inputTokens.count({ model: CHAT, input: "word ".repeat(400) });
  assert.equal(counted.object, "response.input_tokens");
  assert.ok(counted.input_tokens > 450 && counted.input_tokens < 600, String(counted.input_tokens));
});

test("output of a response is input of the next", async () => {
  for (const model of MODELS) {
    await script(model, { text: "Four.", thinking: "Two and two. " });
    const first = await client().responses.create({ model, input: "2 + 2?", store: false });
    const input = [{ role: "user", content: "2 + 2?" }, ...first.output, { role: "user", content: "Sure?" }];
    await script(model, { text: "Yes." });
    assert.equal((await client().responses.create({ model, input, store: false })).output_text, "Yes.");
    const asked = JSON.stringify(await sent(model));
    assert.ok(asked.includes("Four.") && asked.includes("Sure?"), asked);
  }
});

test("compaction", async () => {
  for (const model of MODELS) {
    await script(model, { text: "A summary." });
    const input = [{ role: "user", content: "Hello" }];
    const told = await client().responses.compact({ model, input });
    assert.equal(told.object, "response.compaction");
    assert.deepEqual([told.output[0].role, told.output.at(-1).type], ["user", "compaction"]);
    assert.deepEqual([told.usage.input_tokens, told.usage.output_tokens], [12, 2]);
    // What comes back is an input as it is.
    const answer = await client().responses.create({ model, input: told.output, store: false });
    assert.equal(answer.status, "completed");
  }
});
