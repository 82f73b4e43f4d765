// Every case of the official client for Node.js.

import "./chat.mjs";
import "./responses.mjs";
import "./sockets.mjs";
import "./speech.mjs";
import "./troubles.mjs";
import "./vercel.mjs";
import { run } from "./world.mjs";

await run();
