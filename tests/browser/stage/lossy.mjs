// A relay for datagrams that loses some, each way. Which ones is decided by numbers from a seed, so that a test loses the
// same part every time.

import dgram from "node:dgram";

/** Numbers from 0 to 1 (Mulberry32). */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const bound = (socket, address) => new Promise((resolve, reject) => socket.once("error", reject).bind(0, address, resolve));

export class LossyRelay {
  #clients = new Map();
  #address;
  #random;

  lost = 0;
  passed = 0;

  /**
   * A relay on this address to the servers there. It loses this part of the datagrams each way.
   *
   * @param {string} address
   * @param {number} loss - From 0 to 1.
   * @param {number} seed
   */
  constructor(address, loss, seed = 1) {
    this.#address = address;
    this.loss = loss;
    this.#random = numbers(seed);
  }

  /** Relays what comes to the port that this returns to the server's port, from a port of its own for each client. */
  async to(serverPort) {
    const near = dgram.createSocket("udp4");
    await bound(near, this.#address);
    near.on("message", async (bytes, { address, port }) => {
      const name = `${address}:${port}:${serverPort}`;
      if (!this.#clients.has(name)) this.#clients.set(name, this.#client(near, address, port));
      const far = await this.#clients.get(name);
      this.#pass(() => far.send(bytes, serverPort, this.#address));
    });
    this.#clients.set(near, Promise.resolve(near));
    return near.address().port;
  }

  async #client(near, address, port) {
    const far = dgram.createSocket("udp4");
    await bound(far, this.#address);
    far.on("error", () => {}).on("message", (bytes) => this.#pass(() => near.send(bytes, port, address)));
    return far;
  }

  #pass(send) {
    const lost = this.#random() < this.loss;
    this[lost ? "lost" : "passed"] += 1;
    if (!lost) send();
  }

  async close() {
    for (const socket of this.#clients.values()) (await socket).close();
    this.#clients.clear();
  }
}
