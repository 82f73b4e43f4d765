// Ways to show the original of a document. Blobs get a type of these lists, never that of the server: a browser runs scripts of HTML and SVG.

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const AUDIO = ["audio/mpeg", "audio/wav", "audio/mp4"];
const VIDEO = ["video/mp4", "video/quicktime"];
const TEXTS = ["application/json", "application/xml", "application/yaml", "application/xhtml+xml", "image/svg+xml"];

/** Type of blobs that are only downloaded. */
export const DOWNLOAD_TYPE = "application/octet-stream";

/** A way to show an original; `type` is the type of its blob. */
export type Showing = { kind: "image" | "audio" | "video"; type: string } | { kind: "text" | "pdf" | "download" };

/** Returns how an original of a media type is shown. */
export function showingOf(mediaType: string | null | undefined): Showing {
  const type = (mediaType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (IMAGES.includes(type)) return { kind: "image", type };
  if (AUDIO.includes(type)) return { kind: "audio", type };
  if (VIDEO.includes(type)) return { kind: "video", type: "video/mp4" };
  if (type === "application/pdf") return { kind: "pdf" };
  if (type.startsWith("text/") || TEXTS.includes(type)) return { kind: "text" };
  return { kind: "download" };
}
