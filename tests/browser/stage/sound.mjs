// A sound card for the browsers: a PulseAudio server of our own with two microphones and two speakers. What a test plays
// into a microphone the page hears; what the page plays can be recorded where a loudspeaker would be.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { Program } from "./programs.mjs";
import { until } from "./waiting.mjs";

const RECORDING_RATE = 16_000;

/** The names that browsers show. */
export const LABELS = {
  microphoneA: "Microphone A",
  microphoneB: "Microphone B",
  speakerA: "Speaker A",
  speakerB: "Speaker B",
};

export class SoundCard {
  #folder = mkdtempSync(path.join(tmpdir(), "colloquy-sound-"));

  static async open() {
    const card = new SoundCard();
    const described = (kind, label) => `${kind}_properties="device.description='${label}'"`;
    const modules = [
      `module-native-protocol-unix auth-anonymous=1 socket=${card.#folder}/native`,
      // The first one is the system's default.
      `module-null-sink sink_name=speakerA rate=48000 ${described("sink", LABELS.speakerA)}`,
      `module-null-sink sink_name=speakerB rate=48000 ${described("sink", LABELS.speakerB)}`,
      "module-null-sink sink_name=mouthA rate=48000 channels=1",
      "module-null-sink sink_name=mouthB rate=48000 channels=1",
      // A source of its own, since browsers do not offer the monitor of a loudspeaker as a microphone.
      `module-remap-source source_name=microphoneA master=mouthA.monitor ${described("source", LABELS.microphoneA)}`,
      `module-remap-source source_name=microphoneB master=mouthB.monitor ${described("source", LABELS.microphoneB)}`,
    ];
    const options = ["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=yes"];
    card.program = new Program(
      "pulseaudio",
      [...options, ...modules.flatMap((module) => ["-L", module])],
      { HOME: card.#folder, XDG_RUNTIME_DIR: card.#folder, PULSE_RUNTIME_PATH: card.#folder },
    );
    await until("the sound card", async () => {
      if (!card.program.running) throw new Error(`pulseaudio did not start:\n${card.program.tail()}`);
      const probe = new Program("pactl", ["set-default-source", "microphoneA"], card.env);
      return (await probe.ended).code === 0;
    });
    await new Program("pactl", ["set-default-sink", "speakerA"], card.env).ended;
    // A null sink moves its sound in blocks of up to two seconds, unless somebody wants it sooner.
    card.listeners = ["mouthA", "mouthB", "speakerA", "speakerB"].map((sink) =>
      spawn("parec", [`--device=${sink}.monitor`, "--latency-msec=20"], {
        env: { ...process.env, ...card.env },
        stdio: "ignore",
      }),
    );
    return card;
  }

  /** Takes the microphone `A` or `B` away, as a cable that is pulled. */
  async unplug(microphone) {
    const listed = new Program("pactl", ["list", "short", "modules"], this.env);
    await listed.ended;
    const line = listed.tail().split("\n").find((module) => module.includes(`source_name=microphone${microphone}`));
    const [index] = line?.split("\t") ?? [];
    const { code } = await new Program("pactl", ["unload-module", index], this.env).ended;
    if (code !== 0) throw new Error(`microphone ${microphone} could not be taken away`);
  }

  /** Lets the microphone `A` or `B` hear the loudspeaker beside it, as in a room, until it is closed. */
  async echo(which) {
    const asked = new Program("pactl", [
      "load-module", "module-loopback", `source=speaker${which}.monitor`, `sink=mouth${which}`, "latency_msec=60",
      "source_dont_move=true", "sink_dont_move=true",
    ], this.env);
    await asked.ended;
    const index = asked.tail().trim();
    if (!/^\d+$/.test(index)) throw new Error(`no echo: ${index}`);
    return { close: () => new Program("pactl", ["unload-module", index], this.env).ended };
  }

  /** What makes a program use this card. */
  get env() {
    return { PULSE_SERVER: `unix:${this.#folder}/native` };
  }

  /** Speaks a WAV file into the microphone `A` or `B`; resolves when it was said. */
  async say(file, microphone = "A") {
    const player = new Program("paplay", [`--device=mouth${microphone}`, "--latency-msec=40", file], this.env);
    const { code } = await player.ended;
    if (code !== 0) throw new Error(`paplay failed: ${player.tail()}`);
  }

  /** Records what the speaker `A` or `B` plays. `stop()` gives how loud it was, as the root mean square. */
  record(speaker = "A") {
    const args = [`--device=speaker${speaker}.monitor`, "--raw", "--format=s16le", `--rate=${RECORDING_RATE}`, "--channels=1"];
    const recorder = spawn("parec", args, { env: { ...process.env, ...this.env }, stdio: ["ignore", "pipe", "ignore"] });
    const pieces = [];
    recorder.stdout.on("data", (piece) => pieces.push(piece));
    const ended = new Promise((resolve) => recorder.once("close", resolve));
    return {
      async stop() {
        recorder.kill("SIGTERM");
        await ended;
        return loudness(Buffer.concat(pieces));
      },
    };
  }

  async close() {
    for (const listener of this.listeners ?? []) listener.kill();
    await this.program.stop("SIGTERM", 1_000);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function loudness(pcm) {
  const samples = Math.floor(pcm.length / 2);
  let energy = 0;
  for (let index = 0; index < samples; index += 1) energy += (pcm.readInt16LE(index * 2) / 32_768) ** 2;
  return samples === 0 ? 0 : Math.sqrt(energy / samples);
}
