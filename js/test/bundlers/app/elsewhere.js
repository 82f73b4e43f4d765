import * as sdk from "@colloquy/sdk";

import { placeCall } from "../../call.mjs";

// A script that is no module does not know its URL, so the page says where the files are.
sdk.init({ wasmUrl: "/sdk/colloquy_sdk_bg.wasm", workletUrl: "/sdk/worklet.js" });
placeCall(sdk);
