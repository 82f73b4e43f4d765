// The example servers, without a browser: what they refuse, and what they never tell.

import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import http from "node:http";
import { after, test } from "node:test";

import { customerServer } from "../../examples/server.mjs";
import { verify, webhookReceiver } from "../../examples/webhook.mjs";

const API_KEY = "cqk_this_stays_here";
const servers = [];

after(() => servers.forEach((server) => server.close()));

async function listen(server) {
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

/** A request whose path is sent as it is: `fetch` would tidy `..` away. */
function request(port, path, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = http.request({ port, path, method, headers, agent: false }, async (answer) => {
      let text = "";
      for await (const piece of answer.setEncoding("utf8")) text += piece;
      resolve({ status: answer.statusCode, headers: answer.headers, text });
    });
    sent.on("error", reject).end(body);
  });
}

const customer = (settings) =>
  listen(customerServer({
    backendUrl: "https://calls.example.org",
    apiKey: API_KEY,
    character: "demo/guide",
    publishableKey: "cqp_for_everybody",
    sdkDir: new URL("stage", import.meta.url).pathname,
    createCall: async () => ({ id: "/v2/calls/1", signedUrl: "wss://calls.example.org/1", secret: API_KEY }),
    ...settings,
  }));

const post = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };

test("the page comes with a strict policy", async () => {
  const { status, headers } = await request(await customer(), "/");
  assert.equal(status, 200);
  assert.match(headers["content-security-policy"], /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self' https:\/\/calls\.example\.org wss:\/\/calls\.example\.org;/);
  assert.equal(headers["x-content-type-options"], "nosniff");
});

test("no path leads out of the folders", async () => {
  const port = await customer();
  const paths = [
    "/../server.mjs", "/..%2fserver.mjs", "/%2e%2e/server.mjs", "/site/../../server.mjs", "/sdk/../../package.json",
    "/sdk/..%2f..%2fpackage.json", "/sdk/%2e%2e%2fpackage.json", "/..%5cserver.mjs", "//etc/passwd", "/%00", "/%",
    "/.hidden", "/sdk/", "/site",
  ];
  for (const path of paths) {
    const { status, text } = await request(port, path);
    assert.equal(status, 404, path);
    assert.doesNotMatch(text, /import|root:/, path);
  }
  assert.equal((await request(port, "/sdk/sound.mjs")).status, 200);
});

test("the page learns what it needs and no secret", async () => {
  const port = await customer();
  const texts = await Promise.all(
    ["/", "/app.js", "/config.json"].map(async (path) => (await request(port, path)).text),
  );
  const call = await request(port, "/api/call", post);
  assert.deepEqual(JSON.parse(call.text), { id: "/v2/calls/1", signedUrl: "wss://calls.example.org/1" });
  assert.equal(call.headers["cache-control"], "no-store");
  for (const text of [...texts, call.text]) assert.ok(!text.includes(API_KEY));
});

test("calls are limited by address and told when to come back", async () => {
  const port = await customer({ callsPerMinute: 2 });
  const statuses = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await request(port, "/api/call", post)).status);
  assert.deepEqual(statuses, [200, 200, 429]);
  const { headers, text } = await request(port, "/api/call", post);
  assert.ok(Number(headers["retry-after"]) >= 1);
  assert.equal(JSON.parse(text).error.code, "RATE_LIMITED");
});

test("other sites cannot start calls with a form, and a link does not", async () => {
  const port = await customer();
  const form = { ...post, headers: { "content-type": "text/plain" } };
  assert.equal((await request(port, "/api/call", form)).status, 415);
  assert.equal((await request(port, "/api/call")).status, 405);
  assert.equal((await request(port, "/", { method: "POST" })).status, 405);
});

test("a backend that is away is a bad gateway", async () => {
  const port = await customer({ backendUrl: "http://127.0.0.1:1", createCall: undefined });
  const { status, text } = await request(port, "/api/call", post);
  assert.equal(status, 502);
  assert.equal(JSON.parse(text).error.code, "NETWORK");
});

const secret = `whsec_${randomBytes(24).toString("base64")}`;
const body = Buffer.from('{"data":{"id":"/v2/calls/1","state":"completed"}}');

/** Signed independently of the code under test, as the specification says. */
function signed({ id = "msg_1", timestamp = Math.floor(Date.now() / 1000), key = secret } = {}) {
  const signature = createHmac("sha256", Buffer.from(key.slice(6), "base64"))
    .update(`${id}.${timestamp}.${body}`)
    .digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${signature}` };
}

test("a signature counts for its message, its time and its secret alone", () => {
  const headers = signed();
  assert.equal(verify(secret, headers, body), true);
  assert.equal(verify(secret, { ...headers, "webhook-signature": `v1,AAAA ${headers["webhook-signature"]}` }, body), true);
  assert.equal(verify(secret, headers, Buffer.from(`${body} `)), false);
  assert.equal(verify(secret, { ...headers, "webhook-id": "msg_2" }, body), false);
  assert.equal(verify(secret, { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) }, body), false);
  assert.equal(verify(`whsec_${randomBytes(24).toString("base64")}`, headers, body), false);
  assert.equal(verify(secret, signed({ timestamp: Math.floor(Date.now() / 1000) - 400 }), body), false);
  assert.equal(verify(secret, { ...headers, "webhook-timestamp": "soon" }, body), false);
  assert.equal(verify(secret, {}, body), false);
});

test("a webhook counts once, however often it is delivered", async () => {
  const events = [];
  const port = await listen(webhookReceiver({ secret, onEvent: (event) => events.push(event) }));
  const deliver = (headers) => request(port, "/", { method: "POST", headers, body });
  const headers = signed();
  assert.equal((await deliver(headers)).status, 200);
  assert.equal((await deliver(headers)).status, 200);
  assert.equal((await deliver({ ...headers, "webhook-id": "msg_9" })).status, 401);
  assert.equal((await deliver({})).status, 401);
  assert.deepEqual(events, [JSON.parse(body)]);
  assert.equal((await request(port, "/")).status, 405);
});
