// Forms of the API.

/** Returns the fields of a form that are not empty, as the API takes them. */
export function formFields(fields: FormData, ...names: string[]): Partial<Record<string, string>> {
  const given = names.map((name) => [name, String(fields.get(name) ?? "").trim()]);
  return Object.fromEntries(given.filter(([, text]) => text !== ""));
}

/** Serializes a body as multipart form, without fields that are null. */
export function multipart(body: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) {
    if (value !== null) form.append(name, String(value));
  }
  return form;
}
