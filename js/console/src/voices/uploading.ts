// Recordings that are being sent from dialogs.

import { computed, signal } from "@preact/signals";

import { type Transfer, transfer } from "../documents/transfer";
import { counted } from "../knowledge/words";
import { mayBeLost } from "../unfinished";

const count = signal(0);

mayBeLost(computed(() => (count.value > 0 ? counted(count.value, "upload") : null)));

/** Sends a form with a recording, and returns the answer. The browser asks before the page is left meanwhile. */
export async function upload<T>(form: Omit<Transfer, "method">): Promise<T> {
  count.value += 1;
  try {
    const body = await transfer({ method: "POST", ...form });
    return JSON.parse(await body.text()) as T;
  } finally {
    count.value -= 1;
  }
}
