// Time, locks, channels and servers that tests control.

/** Lets everything run that waits for nothing but promises. */
export async function settle() {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A clock that moves when it is told to. */
export class FakeClock {
  time = 0;
  sleepers = new Set();
  now = () => this.time;
  random = () => 0;

  sleep = (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = () => {
        this.sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper = { until: this.time + ms, wake };
      this.sleepers.add(sleeper);
      signal?.addEventListener("abort", wake);
    });

  async advance(ms) {
    const end = this.time + ms;
    await settle();
    for (;;) {
      const next = [...this.sleepers].filter(({ until }) => until <= end).sort((a, b) => a.until - b.until)[0];
      if (!next) break;
      this.time = next.until;
      next.wake();
      await settle();
    }
    this.time = end;
    await settle();
  }
}

/** A server of event streams. Each connection is answered by the next of `answers`, or else by a stream that stays open. */
export class FakeServer {
  connections = [];
  answers = [];

  open = async (lastId, signal) => {
    const connection = { lastId, signal };
    this.connections.push(connection);
    const answer = this.answers.shift();
    if (answer instanceof Error) throw answer;
    if (answer) return answer;
    const body = new ReadableStream({ start: (controller) => (connection.controller = controller) });
    const send = (text) => connection.controller.enqueue(new TextEncoder().encode(text));
    Object.assign(connection, { send, end: () => connection.controller.close() });
    signal.addEventListener("abort", () => {
      try {
        connection.controller.error(new Error("aborted"));
      } catch {
        // Ended already.
      }
    });
    return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
  };

  get last() {
    return this.connections.at(-1);
  }
}

/** The tabs of a browser: their channel and their locks. */
export class FakeBrowser {
  members = new Set();
  held = null;
  queue = [];

  join = (name, receive) => {
    const member = { name, receive };
    this.members.add(member);
    return {
      post: (message) => {
        if (!this.members.has(member)) return;
        for (const other of this.members) {
          if (other !== member && other.name === name) queueMicrotask(() => this.members.has(other) && other.receive(structuredClone(message)));
        }
      },
      close: () => this.members.delete(member),
    };
  };

  locks = {
    request: (_, { signal, steal }, hold) =>
      new Promise((resolve, reject) => {
        const request = { hold, resolve, reject };
        if (steal) {
          this.held?.reject(new DOMException("stolen", "AbortError"));
          this.held = null;
          this.queue.unshift(request);
        } else {
          this.queue.push(request);
        }
        signal?.addEventListener("abort", () => {
          if (!this.queue.includes(request)) return;
          this.queue.splice(this.queue.indexOf(request), 1);
          reject(new DOMException("aborted", "AbortError"));
        });
        this.#grant();
      }),
  };

  #grant() {
    if (this.held || this.queue.length === 0) return;
    const request = this.queue.shift();
    this.held = request;
    queueMicrotask(async () => {
      await request.hold();
      if (this.held !== request) return;
      this.held = null;
      request.resolve();
      this.#grant();
    });
  }
}
