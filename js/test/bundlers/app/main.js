import * as sdk from "@colloquy/sdk";

import { placeCall } from "../../call.mjs";

placeCall(sdk);
