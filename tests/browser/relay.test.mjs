// Calls through a relay alone, as from a network that lets nothing else through: a TURN server that the backend names.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { networkInterfaces } from "node:os";
import { after } from "node:test";

import { freePort, Program } from "./stage/programs.mjs";
import { understood } from "./stage/speech.mjs";
import { scene, sharedStage } from "./stage/stage.mjs";

sharedStage();

// Browsers gather no candidates on loopback.
const address = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal)?.address;
const port = await freePort();
const password = randomBytes(12).toString("hex");

const relay = address && new Program("turnserver", [
  "-n", "--no-cli", "--no-tls", "--no-dtls", "--log-file=stdout", "--pidfile=", "--lt-cred-mech", "--realm=test",
  `--user=visitor:${password}`, `--listening-ip=${address}`, `--relay-ip=${address}`, `--listening-port=${port}`,
]);
after(() => relay?.stop());

const servers = [{ urls: [`turn:${address}:${port}?transport=udp`], username: "visitor", credential: password }];
const backend = { COLLOQUY_MEDIA_ICE_SERVERS: JSON.stringify(servers) };

scene("media flows through a relay when nothing else may", { backend }, async (stage) => {
  const { page } = stage;
  assert.ok(relay?.running, "there is no relay");
  await page.openSettings();
  await page.flip("relayOnly");
  await page.call();
  await page.shows("the relay", ({ quality }) => /through a relay/.test(quality ?? ""));
  await stage.say();
  await page.says("user", "the recorded words", understood);
  await page.says("bot", "an answer");
});
