// Copies text. Pages without TLS have no clipboard; their text is selected, to be copied by keyboard.

type Field = { focus: () => void; select: () => void };
type Writer = { writeText: (text: string) => Promise<void> } | undefined;

/** Copies text with the clipboard of the browser. Returns false if the text was only selected in its field. */
export async function copy(text: string, field: Field | null, clipboard: Writer): Promise<boolean> {
  try {
    if (clipboard) {
      await clipboard.writeText(text);
      return true;
    }
  } catch {
    // The browser forbids it.
  }
  field?.focus();
  field?.select();
  return false;
}

/** Returns the keys that copy. */
export const copyKeys = (platform: string) => (/mac|iphone|ipad/i.test(platform) ? "⌘C" : "Ctrl+C");
