// The differences of two texts of a document, line by line.

import type { Schemas } from "../api";
import { type DocumentAt, readText } from "../documents/contents";
import type { Call } from "../ui/resource";
import { Shown } from "../ui/states";
import { Difference } from "./difference";
import { ReadAgain, useLiveContents } from "./document-live";

/** The differences of the final content from the digitized text. */
export function Changes({ at, of }: { at: DocumentAt; of: Schemas["DocumentView"] }) {
  const read = (call: Call) => Promise.all([readText(at, "digitized", call), readText(at, "rewritten", call)]);
  const live = useLiveContents(at, of, (of.digitized_chars ?? 0) + (of.rewritten_chars ?? 0), read, []);
  return (
    <Shown of={live.contents}>
      {([before, after]) => (
        <>
          <ReadAgain of={live} />
          <Difference before={before.content} after={after.content} />
        </>
      )}
    </Shown>
  );
}
