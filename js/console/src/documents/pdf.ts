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
  PasswordException: "The file is protected by a password. Download it to open it.",
  InvalidPDFException: "The file is damaged or no PDF file. Download it to look at it with another program.",
};

function problemOf(error: unknown): Problem {
  const name = error instanceof Error ? error.name : "";
  return new Problem(400, name, WORDS[name] ?? "The pages of the file cannot be shown. Download it instead.");
}

/** An open file. Pages are drawn one at a time. */
export class Pdf {
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly file: PDFDocumentProxy,
    private readonly worker: Worker,
    /** Size of the first page. */
    readonly first: Size,
  ) {}

  /** Opens a file, whose bytes are handed over. Throws a {@link Problem}. */
  static async open(data: ArrayBuffer): Promise<Pdf> {
    const port = startWorker(PDF_WORKER_URL);
    const failed = new Promise<never>((_, reject) => {
      port.onerror = () => reject(new Error("the worker failed"));
    });
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
      const opening = async () => {
        const file = await getDocument(options).promise;
        return { file, page: await file.getPage(1) };
      };
      // A hostile file keeps the worker busy for ever.
      const { file, page } = await within(Promise.race([opening(), failed]), OPEN_MS, systemClock);
      const { width, height } = page.getViewport({ scale: 1 });
      return new Pdf(file, port, { width, height });
    } catch (error) {
      port.terminate();
      throw problemOf(error);
    }
  }

  /** Number of pages. */
  get count(): number {
    return this.file.numPages;
  }

  /** Draws a page into its place, and returns its size. `scale` is in pixels of CSS for a point. */
  draw(number: number, scale: number, place: HTMLElement, signal: AbortSignal): Promise<Size> {
    const drawn = this.#turn.then(async () => {
      signal.throwIfAborted();
      const page = await this.file.getPage(number);
      signal.throwIfAborted();
      const { canvas, text } = await drawPage(page, scale, signal);
      signal.throwIfAborted();
      clear(place);
      place.append(canvas, text);
      const { width, height } = page.getViewport({ scale: 1 });
      return { width, height };
    });
    this.#turn = drawn.catch(() => {});
    return drawn;
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
