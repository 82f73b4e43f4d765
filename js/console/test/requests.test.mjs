import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeClock, settle } from "./fakes.mjs";

const { Problem, ask, askPage, createTransport, nextCursor } = await load("problem.ts", "transport.ts");

function transport(answers) {
  const clock = new FakeClock();
  const sent = [];
  const unauthorized = [];
  const counter = { value: 1 };
  const send = createTransport({
    fetch: (request) => {
      sent.push(request);
      const answer = answers.shift();
      return typeof answer === "function" ? answer(request) : Promise.resolve(answer);
    },
    clock,
    signIn: () => counter.value,
    onUnauthorized: (count) => unauthorized.push(count),
  });
  return { clock, sent, unauthorized, counter, send: (path, init) => send(new Request(`http://localhost${path}`, init)) };
}
const status = (status, headers) => new Response("", { status, headers });

test("a read waits for a server that is busy, a change does not", async () => {
  const busy = () => status(503, { "retry-after": "2" });
  const read = transport([busy(), status(429, { "retry-after": "1" }), status(200)]);
  const answered = read.send("/x");
  await read.clock.advance(3_000);
  assert.equal((await answered).status, 200);
  assert.equal(read.sent.length, 3);
  assert.equal((await transport([busy()]).send("/x", { method: "POST" })).status, 503);
  assert.equal((await transport([status(503, { "retry-after": "60" })]).send("/x")).status, 503);
  assert.equal((await transport([status(503)]).send("/x")).status, 503);
});

test("a 401 belongs to the sign-in before the request, and wrong credentials end no session", async () => {
  let answer;
  const { send, unauthorized, counter } = transport([() => new Promise((resolve) => (answer = resolve)), status(401), status(401)]);
  const late = send("/api/keys/acme");
  counter.value = 2;
  await settle();
  answer(status(401));
  await late;
  assert.deepEqual(unauthorized, [1]);
  await send("/api/console/session", { method: "POST" });
  assert.deepEqual(unauthorized, [1]);
  await send("/api/keys/acme", { method: "POST" });
  assert.deepEqual(unauthorized, [1, 2]);
});

test("a read that is not answered ends", async () => {
  const never = ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const { clock, send } = transport([never, never]);
  const answer = assert.rejects(send("/x"), { code: "timeout" });
  await clock.advance(30_000);
  await answer;
  const stop = new AbortController();
  const aborted = assert.rejects(send("/x", { signal: stop.signal }), { name: "AbortError" });
  await settle();
  stop.abort();
  await aborted;
});

test("a response that stalls in the middle ends", async () => {
  const stalled = (request) => {
    const start = (controller) => {
      controller.enqueue(new TextEncoder().encode("{"));
      request.signal.addEventListener("abort", () => controller.error(request.signal.reason));
    };
    return Promise.resolve(new Response(new ReadableStream({ start })));
  };
  const { clock, send } = transport([stalled]);
  const failed = assert.rejects(send("/x"), { code: "timeout" });
  await clock.advance(31_000);
  await failed;
});

test("errors have the message of the server", async () => {
  const problem = (error, code) => ask(Promise.resolve({ error, response: status(code) }));
  await assert.rejects(problem({ detail: "too long", code: "invalid", field: "name" }, 400), { status: 400, message: "too long", code: "invalid", field: "name" });
  const ofCalls = { error: { code: "CALL_NOT_FOUND", message: "Call not found", field: "call_id" } };
  await assert.rejects(problem(ofCalls, 404), { status: 404, message: "Call not found", code: "call_not_found", field: "call_id" });
  await assert.rejects(problem({ error: "not this" }, 400), { status: 400, message: "not this" });
  const ofSpeech = { message: "The request is not valid", errors: { input: ["too long"] } };
  await assert.rejects(problem(ofSpeech, 400), { status: 400, message: "input too long", field: "input" });
  await assert.rejects(problem("<html>", 502), { status: 502, message: "The server answered with status 502." });
  await assert.rejects(problem({ detail: [{ msg: "x" }] }, 422), { status: 422, code: "unknown" });
  await assert.rejects(ask(Promise.reject(new TypeError("fetch failed"))), { status: 0, code: "unreachable" });
  await assert.rejects(ask(Promise.reject(new Problem(0, "timeout", "x"))), { code: "timeout" });
});

test("the next page is that of the Link header", async () => {
  for (const [header, cursor] of [
    ['</api/partners?limit=2&cursor=a%26b>; rel="next"', "a&b"],
    ['<https://x.example/api?cursor=1>; rel="prev", </api?cursor=2>; title="x"; rel="last next"', "2"],
    ["</api?cursor=3>;rel=next", "3"],
    ['</api?cursor=4>; rel="nextish"', null],
    ["</api>; rel=next", null],
    ["", null],
    [null, null],
  ]) {
    assert.equal(nextCursor(header), cursor, header);
  }
  const response = status(200, { link: '</x?cursor=9>; rel="next"' });
  assert.deepEqual(await askPage(Promise.resolve({ data: [1], response })), { entries: [1], next: "9" });
});
