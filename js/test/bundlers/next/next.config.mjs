import { join } from "node:path";

export default {
  // The page's script imports the backend that is in the page from outside of this folder.
  turbopack: { root: join(import.meta.dirname, "..", "..", "..", "..") },
};
