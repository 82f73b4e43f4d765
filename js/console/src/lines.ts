// Lists that are typed into a text field, one entry a line.

/** Returns the lines of a text without the empty ones, each once. */
export const linesOf = (text: string) => [...new Set(text.split("\n").map((line) => line.trim()).filter(Boolean))];
