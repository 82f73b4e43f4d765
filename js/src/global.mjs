// What a plain script tag loads.

import { CallError, CallManager, init } from "./index.mjs";

globalThis.Colloquy = { CallError, CallManager, init };
