import { placeCall } from "../../call.mjs";

placeCall(window.Colloquy);
