// The live transcript. A line with a known id replaces the earlier one: words are corrected, and what the character
// says is cut to what was heard.

/** How near the end counts as reading along, in pixels. */
const NEAR = 40;

export class Transcript {
  #log;
  #lines = new Map();

  constructor(log) {
    this.#log = log;
  }

  clear() {
    this.#lines.clear();
    this.#log.replaceChildren();
  }

  show({ id, originator, role, text, final }) {
    const follows = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < NEAR;
    const line = this.#lines.get(id) ?? this.#add(id, originator, role);
    line.querySelector("span").textContent = text;
    line.dataset.final = String(final);
    line.hidden = text === "";
    // Someone who scrolled back to read is left alone.
    if (follows) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #add(id, originator, role) {
    const line = document.createElement("p");
    line.className = "line";
    line.dataset.originator = originator;
    const name = document.createElement("b");
    name.textContent = role;
    line.append(name, " ", document.createElement("span"));
    this.#log.append(line);
    this.#lines.set(id, line);
    return line;
  }
}
