// Parser of server-sent events (HTML standard, "9.2.6 Interpreting an event stream"). Connections are made elsewhere.

export type Item =
  | { type: "event"; event: string; data: string }
  /** The id that resumes the stream after everything before it. */
  | { type: "id"; id: string }
  /** Time to wait before connecting again. */
  | { type: "retry"; ms: number };

/** Maximum length of a line, in characters. An event names one resource, so longer lines are invalid. */
const MAX_LINE = 65_536;

/** An incremental parser, for one connection. */
export class SseParser {
  #decoder = new TextDecoder();
  /** The beginning of a line whose end has not come yet. */
  #rest = "";
  /** True if the last piece ended with a CR: an LF that follows belongs to the same line end. */
  #isAfterCr = false;
  #event = "";
  #data: string[] = [];
  #id: string | null = null;

  /** Returns the items that a piece completes. Throws for a line that is too long. */
  push(bytes: Uint8Array): Item[] {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    if (this.#isAfterCr && text.startsWith("\n")) text = text.slice(1);
    this.#isAfterCr = text === "" ? false : text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_LINE) throw new Error("a line of the event stream is too long");
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): Item[] {
    if (line === "") return this.#block();
    const colon = line.indexOf(":");
    if (colon === 0) return [];
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (name) {
      case "event":
        this.#event = value;
        break;
      case "data":
        this.#data.push(value);
        break;
      case "id":
        if (!value.includes("\0")) this.#id = value;
        break;
      case "retry":
        if (/^\d+$/.test(value)) return [{ type: "retry", ms: Number(value) }];
        break;
    }
    return [];
  }

  /** Returns the event of the block that ends here, and its id after it. */
  #block(): Item[] {
    const items: Item[] = [];
    if (this.#data.length > 0) items.push({ type: "event", event: this.#event || "message", data: this.#data.join("\n") });
    if (this.#id !== null) items.push({ type: "id", id: this.#id });
    [this.#event, this.#data, this.#id] = ["", [], null];
    return items;
  }
}
