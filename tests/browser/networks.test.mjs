// Setting up media through a network that loses datagrams, those of ICE and DTLS among them.

import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";

import { freePort } from "./stage/programs.mjs";
import { LossyRelay } from "./stage/lossy.mjs";
import { scene } from "./stage/stage.mjs";
import { PATIENCE_MS, scaled } from "./stage/waiting.mjs";

// Browsers gather no candidates on loopback.
const address = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal)?.address;

const SETUPS = 24;
const AT_ONCE = 6;

/** Put into the page: connects as for a check before a call, and says how long each took; `null` when it did not connect. */
function setUp(url, address, serverPort, relayPort, setups, atOnce, patienceMs, done) {
  const one = async () => {
    const connection = new RTCPeerConnection();
    try {
      connection.addTransceiver("audio");
      await connection.setLocalDescription();
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ sdp: connection.localDescription.sdp }),
      });
      const { data } = await answer.json();
      const lines = data.sdp.split("\r\n").filter((line) => !line.startsWith("a=candidate:") || line.includes(` ${address} ${serverPort} `));
      const sdp = lines.join("\r\n").replaceAll(` ${address} ${serverPort} `, ` ${address} ${relayPort} `);
      const begun = performance.now();
      const connected = new Promise((resolve) => {
        setTimeout(resolve, patienceMs, null);
        connection.onconnectionstatechange = () => {
          if (connection.connectionState === "connected") resolve(performance.now() - begun);
        };
      });
      await connection.setRemoteDescription({ type: "answer", sdp });
      return await connected;
    } finally {
      connection.close();
    }
  };
  const took = [];
  const next = async () => {
    while (setups-- > 0) took.push(await one());
  };
  Promise.all(Array.from({ length: atOnce }, next)).then(() => done({ took }), (error) => done({ error: String(error) }));
}

// The port is needed by one browser at a time.
const port = await freePort();
const backend = { COLLOQUY_MEDIA_UDP_PORT: String(port), COLLOQUY_LIMITS_ATTEMPTS_PER_MINUTE: "1000" };

// The parts that are lost, with what half of the connections may take on a machine of ordinary speed.
for (const [loss, medianMs] of [[0, 1_000], [0.1, 1_000], [0.2, 2_000]]) {
  scene(`media is set up when ${100 * loss} % of all datagrams are lost`, { busy: true, backend }, async (stage) => {
    assert.ok(address, "this machine has no address but loopback");
    const relay = new LossyRelay(address, loss);
    try {
      const relayPort = await relay.to(port);
      const url = `${stage.backend.url}/v2/calls/check`;
      const { driver } = stage.browser;
      await driver.manage().setTimeouts({ script: scaled(50_000) });
      const { took, error } = await driver.executeAsyncScript(setUp, url, address, port, relayPort, SETUPS, AT_ONCE, scaled(PATIENCE_MS));
      assert.equal(error, undefined);
      assert.equal(took.length, SETUPS);
      const failed = took.filter((ms) => ms === null).length;
      assert.equal(failed, 0, `${failed} of ${SETUPS} were not set up`);
      took.sort((one, other) => one - other);
      const median = took[SETUPS / 2];
      // Without losses nothing waits for the client's timer, which repeats after a second.
      const most = loss === 0 ? Math.min(scaled(medianMs), 950) : scaled(medianMs);
      assert.ok(median < most, `half of them took ${median} ms and more`);
      assert.equal(relay.lost > 0, loss > 0, "the network lost nothing");
      if (process.env.FIGURES) console.log(`${stage.browser.name}: ${loss}: ${took.map(Math.round).join(" ")} ms`);
    } finally {
      await relay.close();
    }
  });
}
