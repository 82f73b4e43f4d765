// A call of the page, as signals: its state, what is said, and what went wrong.

import { type ReadonlySignal, batch, computed, signal } from "@preact/signals";
import type { AgentState, CallError, CallManager, Callbacks, Config, Device, Devices, HangUpReason, TranscriptLine } from "@colloquy/sdk";

import { toProblem } from "../problem";
import { type State, failureWords, refusalWords } from "./words";

/** Interfaces that a call needs. */
export type CallPorts = {
  Manager: new (callbacks: Callbacks, config?: Config | null) => Pick<CallManager, "handleCall2" | "hangUp" | "mute" | "startAudio" | "changeDevices">;
  /** Lists the microphones and speakers. */
  devices: () => Promise<Devices>;
  /** Creates a call at the server. */
  create: () => Promise<{ id: string; signedUrl: string }>;
  /** Ends a call that nobody joins. */
  cancel: (id: string) => void;
};

const OVER: readonly State[] = ["idle", "completed", "error"];

/** Adds a line, or replaces the one with its id. A line whose words were taken back is left out. */
export function withLine(lines: readonly TranscriptLine[], line: TranscriptLine): TranscriptLine[] {
  const isKnown = lines.some(({ id }) => id === line.id);
  const all = isKnown ? lines.map((other) => (other.id === line.id ? line : other)) : [...lines, line];
  return all.filter(({ text }) => text !== "");
}

/** Calls, one at a time. */
export class Call {
  readonly state = signal<State>("idle");
  readonly agent = signal<AgentState | null>(null);
  readonly lines = signal<readonly TranscriptLine[]>([]);
  /** Loudness of the microphone, 0 to 1. */
  readonly level = signal(0);
  readonly isMuted = signal(false);
  /** The microphones to choose from; empty before the browser lets the page use one. */
  readonly microphones = signal<readonly Device[]>([]);
  /** The id of the chosen microphone; empty for that of the system. */
  readonly microphone = signal("");
  /** True while the browser holds the character's voice back. */
  readonly isBlocked = signal(false);
  /** Why the call failed, or what failed in it; empty if nothing did. */
  readonly failure = signal("");
  readonly end = signal<HangUpReason | null>(null);
  /** The UUID of the running or last call. */
  readonly id = signal<string | null>(null);
  readonly isOver: ReadonlySignal<boolean> = computed(() => OVER.includes(this.state.value));
  readonly #manager: InstanceType<CallPorts["Manager"]>;
  readonly #ports: CallPorts;
  /** Counts starts and ends: what was begun before the last one is of no interest. */
  #count = 0;

  constructor(ports: CallPorts) {
    this.#ports = ports;
    this.#manager = new ports.Manager(
      {
        onCallStart: () => {},
        onCallError: (error) => {
          this.failure.value = failureWords(error);
        },
        onHangUp: (reason) => this.#finish(reason),
        onStatusUpdate: (status) => {
          this.state.value = status;
        },
        onConnected: () => void this.#listDevices(),
        onDevicesChanged: (devices) => this.#setDevices(devices),
        onTranscript: (line) => {
          this.lines.value = withLine(this.lines.peek(), line);
        },
        onAgentStateChange: (agent) => {
          this.agent.value = agent;
        },
        onLevels: ({ microphone }) => {
          this.level.value = microphone;
        },
        onAudioBlockedChange: (isBlocked) => {
          this.isBlocked.value = isBlocked;
          // The button that plays it says what was wrong.
          if (!isBlocked) this.failure.value = "";
        },
      },
      { wakeLock: true },
    );
  }

  async start(): Promise<void> {
    if (!this.isOver.peek()) return;
    const count = ++this.#count;
    batch(() => {
      [this.state.value, this.failure.value, this.end.value, this.id.value] = ["creating", "", null, null];
      [this.agent.value, this.lines.value, this.isBlocked.value] = [null, [], false];
    });
    try {
      const { id, signedUrl } = await this.#ports.create();
      if (count !== this.#count) return this.#ports.cancel(id);
      [this.id.value, this.state.value] = [id, "starting"];
      await this.#manager.handleCall2(null, null, signedUrl);
    } catch (error) {
      if (count !== this.#count) return;
      batch(() => {
        this.failure.value = refusalWords(toProblem(error));
        this.state.value = "error";
      });
    }
  }

  /** Ends the call, at any moment. */
  hangUp(): void {
    this.#count += 1;
    if (this.state.peek() === "creating") this.#finish("local");
    else this.#manager.hangUp();
  }

  mute(isMuted: boolean): void {
    this.isMuted.value = isMuted;
    this.#manager.mute(isMuted);
  }

  /** Switches to a microphone, now or for the next call. */
  async choose(microphone: string): Promise<void> {
    const before = this.microphone.peek();
    [this.microphone.value, this.failure.value] = [microphone, ""];
    try {
      await this.#manager.changeDevices(microphone, null);
    } catch (error) {
      this.microphone.value = before;
      this.failure.value = failureWords(error as CallError);
    }
  }

  /** Plays what the browser held back. */
  async play(): Promise<void> {
    await this.#manager.startAudio().catch(() => {});
  }

  async #listDevices(): Promise<void> {
    const devices = await this.#ports.devices().catch(() => null);
    if (devices) this.#setDevices(devices);
  }

  #setDevices({ microphones }: Devices): void {
    // Without their names they cannot be told apart.
    const named = microphones.filter(({ deviceId, label }) => deviceId !== "" && label !== "");
    batch(() => {
      this.microphones.value = named;
      const isThere = named.some(({ deviceId }) => deviceId === this.microphone.peek());
      if (!isThere) this.microphone.value = named.find(({ isDefault }) => isDefault)?.deviceId ?? "";
    });
  }

  #finish(reason: HangUpReason): void {
    batch(() => {
      this.end.value = reason;
      this.state.value = reason === "error" ? "error" : "completed";
      [this.agent.value, this.level.value, this.isBlocked.value] = [null, 0, false];
    });
  }
}
