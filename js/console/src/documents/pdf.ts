// PDF files: opened by pdf.js in a worker, without scripts, forms and links.

import { PDFWorker, TextLayer, getDocument } from "pdfjs-dist/legacy/build/pdf.mjs";
import type { PDFDocumentProxy, PDFPageProxy } from "pdfjs-dist";

import { systemClock, within } from "../clock";
import { Problem } from "../problem";
import { startWorker } from "../worker";

/** Larger images of a file are left out, in pixels. */
const MAX_IMAGE_PIXELS = 64_000_000;
/** The largest canvas of a page, in pixels: what is larger is drawn coarser. */
const MAX_CANVAS_PIXELS = 16_000_000;

/** Time to open a file. */
const OPEN_MS = 60_000;
/** Time that a worker has to end by itself. */
const CLOSE_MS = 1_000;

/** Size of a page, in points. */
export type Size = { width: number; height: number };

/** A page as it is drawn: the canvas, and its text above that. */
type Drawn = { canvas: HTMLCanvasElement; text: HTMLElement };

const WORDS: Record<string, string> = {
  InvalidPDFException: "The file is damaged or no PDF file. Download it to look at it with another program.",
};

function problemOf(error: unknown): Problem {
  const name = error instanceof Error ? error.name : "";
  return new Problem(400, name, WORDS[name] ?? "The pages of the file cannot be shown. Download it instead.");
}

/** Asks the user for the password of a file, in words that say if the last one was wrong. Rejects if nobody gives one. */
export type AskPassword = (isWrong: boolean) => Promise<string>;

/** pdf.js asked for another password because the last one was wrong (`PasswordResponses.INCORRECT_PASSWORD`). */
const INCORRECT_PASSWORD = 2;

/** An open file. Pages are drawn one at a time. */
export class Pdf {
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly file: PDFDocumentProxy,
    private readonly worker: Worker,
    /** Size of the first page. */
    readonly first: Size,
    /** Rejects when the worker dies. */
    private readonly failed: Promise<never>,
    private readonly fail: () => void,
  ) {}

  /** Opens a file, whose bytes are handed over. A password stays in the page. Throws a {@link Problem}. */
  static async open(data: ArrayBuffer, askPassword: AskPassword): Promise<Pdf> {
    const port = startWorker(PDF_WORKER_URL);
    let fail = () => {};
    const failed = new Promise<never>((_, reject) => {
      fail = () => reject(new Error("the worker failed"));
      port.onerror = fail;
    });
    // Somebody waits for it only at times.
    failed.catch(() => {});
    const files = new URL(PDF_FILES_URL, location.origin).href;
    const options = {
      data,
      worker: new PDFWorker({ port: port as unknown as null }),
      cMapUrl: `${files}cmaps/`,
      standardFontDataUrl: `${files}standard_fonts/`,
      wasmUrl: `${files}wasm/`,
      // The policy of the page forbids WebAssembly; scripts decode instead.
      useWasm: false,
      disableWorkerRendering: true,
      maxImageSize: MAX_IMAGE_PIXELS,
      verbosity: 0,
    };
    try {
      const task = getDocument(options);
      const opened = async () => {
        const file = await task.promise;
        return { file, page: await file.getPage(1) };
      };
      // The user may take any time for a password, the worker may not.
      const { file, page } = await new Promise<Awaited<ReturnType<typeof opened>>>((resolve, reject) => {
        const opening = opened();
        // A hostile file keeps the worker busy for ever. Each password begins a new wait.
        let wait = 0;
        const limit = () => {
          const own = ++wait;
          within(Promise.race([opening, failed]), OPEN_MS, systemClock).then(resolve, (error: unknown) => own === wait && reject(error as Error));
        };
        task.onPassword = (give: (password: string | Error) => void, reason: number) => {
          wait += 1;
          askPassword(reason === INCORRECT_PASSWORD).then((password) => {
            limit();
            give(password);
          }, reject);
        };
        limit();
      });
      const { width, height } = page.getViewport({ scale: 1 });
      return new Pdf(file, port, { width, height }, failed, fail);
    } catch (error) {
      port.terminate();
      throw problemOf(error);
    }
  }

  /** Calls back when the worker dies, after which no page can be drawn. */
  onFailed(act: (problem: Problem) => void): void {
    this.failed.catch(() => act(new Problem(0, "worker", "The pages of the file can no longer be drawn.")));
  }

  /** Number of pages. */
  get count(): number {
    return this.file.numPages;
  }

  /** Draws a page into its place, and returns its size. `scale` is in pixels of CSS for a point. */
  draw(number: number, scale: number, place: HTMLElement, signal: AbortSignal): Promise<Size> {
    const drawn = this.#turn.then(async () => {
      signal.throwIfAborted();
      const page = await Promise.race([this.#page(number), this.failed]);
      signal.throwIfAborted();
      const { canvas, text } = await Promise.race([drawPage(page, scale, signal), this.failed]);
      signal.throwIfAborted();
      clear(place);
      place.append(canvas, text);
      const { width, height } = page.getViewport({ scale: 1 });
      return { width, height };
    });
    this.#turn = drawn.catch(() => {});
    return drawn;
  }

  /** Reads a page. A worker that does not answer has died, which browsers do not always tell. */
  async #page(number: number): Promise<PDFPageProxy> {
    const page = this.file.getPage(number);
    const late = systemClock.sleep(OPEN_MS).then(() => "late" as const);
    const first = await Promise.race([page, late]);
    if (first !== "late") return first;
    this.fail();
    return page;
  }

  /** Ends the worker, after a moment also if it does not answer. */
  close(): void {
    const ended = this.file.loadingTask.destroy().catch(() => {});
    void Promise.race([ended, systemClock.sleep(CLOSE_MS)]).then(() => this.worker.terminate());
  }
}

async function drawPage(page: PDFPageProxy, scale: number, signal: AbortSignal): Promise<Drawn> {
  const viewport = page.getViewport({ scale });
  const finest = Math.sqrt(MAX_CANVAS_PIXELS / (viewport.width * viewport.height));
  const ratio = Math.min(window.devicePixelRatio, finest);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.floor(viewport.width * ratio));
  canvas.height = Math.max(1, Math.floor(viewport.height * ratio));
  canvas.setAttribute("aria-hidden", "true");
  const text = document.createElement("div");
  text.className = "pdf-text";
  text.style.setProperty("--total-scale-factor", String(scale));
  const rendering = page.render({ canvas, viewport, transform: [ratio, 0, 0, ratio, 0, 0] });
  const layer = new TextLayer({ textContentSource: page.streamTextContent(), container: text, viewport });
  const cancel = () => {
    rendering.cancel();
    layer.cancel();
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    // A page whose text cannot be read still has its picture.
    await Promise.all([rendering.promise, layer.render().catch(() => {})]);
  } finally {
    signal.removeEventListener("abort", cancel);
    page.cleanup();
  }
  return { canvas, text };
}

/** Removes a page from its place and frees its memory. */
export function clear(place: HTMLElement): void {
  for (const canvas of place.querySelectorAll("canvas")) canvas.width = 0;
  place.replaceChildren();
}
