/** The address of the icons, set by the build. */
declare const ICONS_URL: string;
/** True if the build has the page for calls, for which the SDK is needed. */
declare const HAS_TALK: boolean;
/** The addresses of the SDK's files, set by the build in the page for calls. */
declare const SDK_WASM_URL: string;
declare const SDK_WORKLET_URL: string;

interface HTMLElement {
  /** Shows a popover that `source` anchors. */
  showPopover(options: { source: HTMLElement }): void;
}

/** The address of the worker of pdf.js, set by the build. */
declare const PDF_WORKER_URL: string;
/** The address of the folder of files that pdf.js loads, set by the build. */
declare const PDF_FILES_URL: string;

/** Trusted Types, where the browser has them. */
interface Window {
  trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
  };
}
