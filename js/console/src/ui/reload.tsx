// The button of views that no event keeps up to date.

import { Icon } from "./icon";
import type { Resource } from "./resource";

export function Reload({ of: { isLoading, reload } }: { of: Pick<Resource<unknown>, "isLoading" | "reload"> }) {
  return (
    <button type="button" aria-disabled={isLoading.value} onClick={() => !isLoading.value && void reload()}>
      <Icon name="refresh-cw" /> {isLoading.value ? "Reading…" : "Read again"}
    </button>
  );
}
