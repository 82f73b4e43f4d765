// Doubles of services that a backend asks: a voice worker, and a model. Each browser has its own, below a path.

import { createServer } from "node:http";

const SCORES = [0.93, 0.41, 0.87];

class Service {
  /** What the worker has of its jobs, by their ids. */
  jobs = new Map();
  /** The answer of the model; null if it refuses requests. */
  answer = null;

  worker(method, [id, what, name], body) {
    if (method === "DELETE") return this.jobs.delete(id) ? { status: 204 } : { status: 404 };
    if (what === undefined && method === "PUT") {
      const { callback_url: callback } = JSON.parse(body);
      this.jobs.set(id, { callback, samples: new Map(), isStarted: false });
      return { status: 204 };
    }
    const job = this.jobs.get(id);
    if (!job) return { status: 404 };
    if (what === "samples") {
      job.samples.set(Number(name), body);
      return { status: 204 };
    }
    if (what === "start") {
      job.isStarted = true;
      if (job.callback) setTimeout(() => void fetch(job.callback, { method: "POST" }).catch(() => {}), 100);
      return { status: 204 };
    }
    if (what === "files") return { status: 200, body: this.#file(job, name) };
    return { status: 200, body: JSON.stringify(this.#state(job)) };
  }

  /** Test sentences sound like their samples. */
  #file(job, name) {
    const [, sample] = /^test_(\d+)_/.exec(name) ?? [];
    return sample === undefined ? Buffer.from("PK") : job.samples.get(Number(sample));
  }

  #state({ samples, isStarted }) {
    if (!isStarted) return { state: "waiting" };
    const indices = [...samples.keys()].sort((one, other) => one - other);
    return {
      state: "completed",
      voice: null,
      scores: indices.map((sample_index) => ({ sample_index, score: SCORES[sample_index % SCORES.length] })),
      test_samples: indices.map((sample_index) => ({ sample_index, sentence_index: 0 })),
      has_embedding: true,
    };
  }

  model() {
    if (this.answer === null) return { status: 400, body: JSON.stringify({ error: { message: "no" } }) };
    const message = { role: "assistant", content: JSON.stringify(this.answer) };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const completion = { id: "c", object: "chat.completion", created: 0, model: "scripted", choices: [{ index: 0, message, finish_reason: "stop" }], usage };
    return { status: 200, body: JSON.stringify(completion) };
  }
}

export class Services {
  #services = new Map();

  static async start() {
    const services = new Services();
    const server = createServer((request, response) => void services.#respond(request, response));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    // The process ends without it.
    server.unref();
    services.url = `http://127.0.0.1:${server.address().port}`;
    return services;
  }

  of(browser) {
    if (!this.#services.has(browser)) this.#services.set(browser, new Service());
    return this.#services.get(browser);
  }

  /** Settings of a backend that asks the services of a browser. */
  settings(browser) {
    return {
      COLLOQUY_VOICE_WORKER_BASE_URL: `${this.url}/${browser}/worker/`,
      COLLOQUY_VOICE_WORKER_DEFAULT_TYPE: "scripted",
      COLLOQUY_CHAT_BASE_URL: `${this.url}/${browser}/v1`,
      COLLOQUY_CHAT_MODEL: "scripted",
    };
  }

  async #respond(request, response) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const [, browser, kind, ...rest] = new URL(request.url, this.url).pathname.split("/");
    const { status, body } = kind === "worker" ? this.#worker(browser, request.method, rest, Buffer.concat(pieces)) : this.of(browser).model();
    response.writeHead(status, { "Content-Type": "application/json" }).end(body);
  }

  #worker(browser, method, [first, ...rest], body) {
    return first === "jobs" ? this.of(browser).worker(method, rest, body) : { status: 204 };
  }
}
