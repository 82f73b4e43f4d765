// Digests of files.

/** Returns the SHA-256 of a file in hexadecimal; null on pages without TLS, and for files that do not fit into memory. */
export async function sha256(file: Blob): Promise<string | null> {
  try {
    const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  } catch {
    return null;
  }
}
