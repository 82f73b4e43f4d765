// Paths below `/console`, with their parts encoded as in the address.

/** Decodes a part of a path. One that is malformed stays as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Returns the decoded parts of a path that a pattern names, such as `/:partner/keys`; null for a path that does not match. A name with a `*` at its
 * end takes the rest of the path.
 */
export function match(pattern: string, path: string): Record<string, string> | null {
  const names = pattern.split("/");
  const parts = path.split("/");
  const found: Record<string, string> = {};
  for (const [place, name] of names.entries()) {
    if (name.startsWith(":") && name.endsWith("*")) {
      if (place > parts.length) return null;
      found[name.slice(1, -1)] = parts.slice(place).map(decodePart).join("/");
      return found;
    }
    const part = parts[place];
    if (part === undefined || (part === "" && name !== "")) return null;
    if (name.startsWith(":")) found[name.slice(1)] = decodePart(part);
    else if (name !== decodePart(part)) return null;
  }
  return names.length === parts.length ? found : null;
}

/** Fills in the names of a pattern. */
export function fill(pattern: string, values: Record<string, string>): string {
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
}

/** Returns the path below `/console` of the path of an address, without a slash at its end. */
export function below(base: string, pathname: string): string {
  return (pathname.startsWith(base) ? pathname.slice(base.length) : pathname).replace(/\/+$/, "") || "/";
}
