// The entry of the page for calls. The SDK needs WebAssembly and the microphone, which the console does without.

import "./styles/main.css";
import "./styles/talk.css";

import { CallManager, init } from "@colloquy/sdk";
import { render } from "preact";

import { sessions } from "./api";
import { toProblem } from "./problem";
import { readTarget } from "./talk/address";
import { Call } from "./talk/call";
import { Callee } from "./talk/callee";
import { TalkPage } from "./talk/page";
import { cancelCall, createCall, readCalled } from "./talk/target";
import { Failed } from "./ui/states";
import "./ui/theme";

const target = readTarget(new URLSearchParams(location.search));
const callee = target && new Callee({ read: () => readCalled(target), now: () => new Date() });

// A failure is told when a call begins, which loads them again.
init({ wasmUrl: SDK_WASM_URL, workletUrl: SDK_WORKLET_URL }).catch(() => {});
const call = new Call({
  Manager: CallManager,
  devices: () => CallManager.getAvailableDevices(),
  create: async () => {
    if (!target || !callee) throw new Error("The address names no character.");
    return createCall(target.partner, await callee.toCall());
  },
  cancel: cancelCall,
});

const root = document.getElementById("app");

async function start(): Promise<void> {
  if (!root) return;
  try {
    render(<TalkPage target={target} call={call} callee={callee} />, root);
    await sessions.read();
  } catch (error) {
    const problem = toProblem(error);
    render(
      <main class="talk">
        <Failed problem={problem} retry={() => void start()} />
      </main>,
      root,
    );
  }
}
void start();
