// Workers from the files of the console. The policy of the page allows scripts of its own addresses alone.

/** Addresses of scripts that the build made. */
const OWN_SCRIPT = /^\/console\/assets\/[\w-]+\.js$/;

/** Returns the address of a script of the console. Throws for any other address. */
export function ownScript(url: string): string {
  if (!OWN_SCRIPT.test(url)) throw new TypeError("not a script of the console");
  return url;
}

type Policy = { createScriptURL(url: string): string };

let policy: Policy | undefined;

/** Starts a worker, which is a module. */
export function startWorker(url: string): Worker {
  policy ??= window.trustedTypes?.createPolicy("colloquy-console", { createScriptURL: ownScript }) ?? { createScriptURL: ownScript };
  return new Worker(policy.createScriptURL(url), { type: "module" });
}
