// Requests of which only the last one counts, such as those of a choice that is changed again at once.

/** Runs a task for one value at a time. A value that is given meanwhile waits, and takes the place of one that waits already. */
export class Latest<T> {
  #waiting: { value: T } | null = null;
  #isRunning = false;

  /** `run` must not throw. `isLast` says whether no other value waits. */
  constructor(private readonly run: (value: T, isLast: () => boolean) => Promise<void>) {}

  set(value: T): void {
    this.#waiting = { value };
    if (!this.#isRunning) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting) {
      const { value }: { value: T } = this.#waiting;
      this.#waiting = null;
      await this.run(value, () => this.#waiting === null);
    }
    this.#isRunning = false;
  }
}
