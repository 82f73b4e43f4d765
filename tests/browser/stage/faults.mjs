// Failures of a browser, which say nothing about the SDK or the server.

/** A fault of the browser itself: the scene that throws it is played once more. */
export class BrowserFault extends Error {
  name = "BrowserFault";
}
