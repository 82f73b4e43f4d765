// A wire between a page and the backend that can be cut, carry nothing, carry things late, or lead elsewhere. Media does not go over it.

import net from "node:net";
import { Transform } from "node:stream";

export class Wire {
  #sockets = new Set();
  #broken = false;
  #silent = false;
  #delayMs = 0;

  #end;

  /** A wire to the server at this URL; its own is `url`. */
  static async to(url) {
    const wire = new Wire();
    wire.lead(url);
    wire.server = net.createServer((near) => {
      if (wire.#broken) {
        near.destroy();
        return;
      }
      if (wire.#silent) {
        wire.#sockets.add(near.on("error", () => {}));
        return;
      }
      const far = net.connect(Number(wire.#end.port), wire.#end.hostname);
      for (const [one, other] of [[near, far], [far, near]]) {
        wire.#sockets.add(one);
        one.on("error", () => {}).on("close", () => other.destroy()).pipe(wire.#late()).pipe(other);
      }
    });
    await new Promise((resolve) => wire.server.listen(0, "127.0.0.1", resolve));
    wire.host = `127.0.0.1:${wire.server.address().port}`;
    wire.url = `http://${wire.host}`;
    return wire;
  }

  /** Leads a URL of the server over the wire. */
  over(url) {
    const led = new URL(url);
    led.host = this.host;
    return led.href;
  }

  cut() {
    this.#broken = true;
    this.#sockets.forEach((socket) => socket.destroy());
    this.#sockets.clear();
  }

  mend() {
    this.#broken = false;
  }

  /** From now on, who connects reaches the server at this URL. */
  lead(url) {
    this.#end = new URL(url);
  }

  /** From now on, who connects hears nothing. */
  silence() {
    this.#silent = true;
  }

  /** From now on, what comes over the wire arrives so much later, each way. */
  delay(ms) {
    this.#delayMs = ms;
  }

  #late() {
    const transform = (bytes, _, passed) => {
      if (this.#delayMs > 0) setTimeout(passed, this.#delayMs, null, bytes);
      else passed(null, bytes);
    };
    return new Transform({ transform });
  }

  close() {
    this.cut();
    this.server.close();
  }
}
