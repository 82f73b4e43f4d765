// Calls through a relay alone, as from a network that lets nothing else through: a TURN server that the backend names, or
// the page.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import net from "node:net";
import { networkInterfaces } from "node:os";

import { WITH_EARS } from "./stage/backend.mjs";
import { BROWSERS } from "./stage/browsers.mjs";
import { freePort, Program } from "./stage/programs.mjs";
import { understood } from "./stage/speech.mjs";
import { scene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

// Browsers gather no candidates on loopback.
const address = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal)?.address;
const username = "visitor";
const credential = randomBytes(12).toString("hex");
const urls = (port, transport) => `turn:${address}:${port}?transport=${transport}`;

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, address);
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** Starts a TURN server. */
async function startRelay(port) {
  assert.ok(address, "this machine has no address but loopback");
  const relay = new Program("turnserver", [
    "-n", "--no-cli", "--no-tls", "--no-dtls", "--log-file=stdout", "--pidfile=", "--lt-cred-mech", "--realm=test",
    `--user=${username}:${credential}`, `--listening-ip=${address}`, `--relay-ip=${address}`, `--listening-port=${port}`,
  ]);
  try {
    await until("the relay listens", () => relay.running && accepts(port));
    return relay;
  } catch (error) {
    await relay.stop("SIGKILL");
    throw new Error(`${error.message}\n${relay.tail()}`);
  }
}

/** The port of each browser's relay. */
const ports = Object.fromEntries(await Promise.all(BROWSERS.map(async (browser) => [browser, await freePort()])));
const backend = (browser) => {
  const servers = [{ urls: [urls(ports[browser], "udp")], username, credential }];
  return { ...WITH_EARS, COLLOQUY_MEDIA_ICE_SERVERS: JSON.stringify(servers) };
};

scene("media flows through a relay when nothing else may", { calm: true, backend }, async (stage) => {
  const { page } = stage;
  const relay = await startRelay(ports[stage.browserName]);
  try {
    await page.openSettings();
    await page.flip("relayOnly");
    await page.call();
    await page.shows("the relay", ({ quality }) => /through a relay, UDP/.test(quality ?? ""));
    const from = await page.ears.now();
    await stage.say();
    await page.says("user", "the recorded words", understood);
    await page.answers(from);
  } finally {
    await relay.stop();
  }
});

/** Put into the page: keeps what is sent to the session. */
function keepFrames() {
  window.sent = [];
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function keep(frame) {
    window.sent.push(JSON.parse(frame));
    return send.call(this, frame);
  };
}

/** How often a call reached a state. */
const reached = (callbacks, state) =>
  callbacks.filter(({ name, text }) => name === "onStatusUpdate" && text.endsWith(`("${state}")`)).length;

/** A muted call through a relay of the page's own, over this transport. The relay is taken away and comes back. */
async function losesItsRelay(stage, transport) {
  const { page } = stage;
  const port = await freePort();
  let relay = await startRelay(port);
  try {
    await page.openSettings();
    await page.flip("relayOnly");
    await page.fill("iceServer", urls(port, transport));
    await page.fill("iceUser", username);
    await page.fill("iceCredential", credential);
    await page.driver.executeScript(keepFrames);
    await page.call();
    const path = `through a relay, ${transport.toUpperCase()}`;
    await page.shows("the relay", ({ quality }) => quality?.includes(path));
    await page.click("mute");
    await relay.stop("SIGKILL");
    // It is there again at once, but knows nothing of the call.
    relay = await startRelay(port);
    // A browser may be back before anybody could look at the state in between.
    await page.shows("the connection again", ({ callbacks }) => reached(callbacks, "ongoing") === 2, 45_000);
    const frames = await page.driver.executeScript("return window.sent");
    const [first, ...restarts] = frames.filter(({ type }) => type === "offer").map((offer) => offer.ice_restart);
    assert.equal(first, false);
    assert.ok(restarts.length > 0 && restarts.every(Boolean), `ICE was not restarted: ${restarts}`);
    const from = await page.ears.now();
    await stage.say();
    await page.type("What is your name?");
    await page.answers(from);
    const { error, lines } = await page.read();
    assert.equal(error, null);
    assert.deepEqual(lines.filter(({ originator }) => originator === "user").map(({ text }) => text), ["What is your name?"]);
  } finally {
    await relay.stop();
  }
}

for (const transport of ["udp", "tcp"]) {
  scene(`a relay of the page's own, over ${transport.toUpperCase()}, is found again after it was away`, { waits: true, sound: true }, (stage) =>
    losesItsRelay(stage, transport));
}
