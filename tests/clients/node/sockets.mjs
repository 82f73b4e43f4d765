// Responses over a WebSocket, over models of both APIs.

import assert from "node:assert/strict";

import { ResponsesWS } from "openai/resources/responses/ws";

import { MODELS, RESPONSES, client, script, sent, test } from "./world.mjs";

/** What comes for a message on a connection, up to the end of the response. */
async function made(socket, body) {
  socket.send({ type: "response.create", ...body });
  const events = [];
  for await (const event of socket.stream()) {
    if (event.type === "error") return [event.error];
    if (event.type === "close") assert.fail(`closed with ${event.code}`);
    if (event.type === "message") events.push(event.message);
    if (event.message?.type === "response.completed") return events;
  }
}

test("socket", async () => {
  const socket = new ResponsesWS(client());
  for (const model of MODELS) {
    await script(model, { text: "One two three.", thinking: "Hm. " });
    const events = await made(socket, { model, input: "Hello" });
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    const said = events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta);
    assert.equal(said.join(""), "One two three.");
  }
  socket.close();
});

test("socket goes on", async () => {
  const socket = new ResponsesWS(client());
  const body = { model: RESPONSES, store: false };
  const first = (await made(socket, { ...body, input: "One" })).at(-1).response;
  await made(socket, { ...body, input: "Two", previous_response_id: first.id });
  const roles = (await sent(RESPONSES)).input.map((item) => item.role);
  assert.deepEqual(roles, ["user", "assistant", "user"]);
  socket.close();
});

test("socket errors", async () => {
  const socket = new ResponsesWS(client());
  const [error] = await made(socket, { model: "nobody", input: "Hello" });
  assert.match(error.message, /model_not_found|there is no model nobody/);
  assert.equal((await made(socket, { model: RESPONSES, input: "Hello" })).at(-1).type, "response.completed");
  socket.close();
  const refused = new ResponsesWS(client({ key: "nobody" }));
  const [reason] = await made(refused, { model: RESPONSES, input: "Hello" });
  assert.match(reason.message, /401/);
});
