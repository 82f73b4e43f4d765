import * as sdk from "@colloquy/sdk/inline";

import { placeCall } from "../../call.mjs";

placeCall(sdk);
