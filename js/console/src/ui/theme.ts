// The theme: that of the system unless somebody chose one.

import { signal } from "@preact/signals";

import { kept } from "../storage";

export type Theme = "system" | "light" | "dark";

const KEY = "colloquy-theme";
const chosen = kept.get(KEY);

export const theme = signal<Theme>(chosen === "light" || chosen === "dark" ? chosen : "system");

function show(): void {
  document.documentElement.dataset["theme"] = theme.value;
}

/** Switches between light and dark. */
export function toggleTheme(): void {
  const isDark = theme.value === "dark" || (theme.value === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  theme.value = isDark ? "light" : "dark";
  kept.set(KEY, theme.value);
  show();
}

show();
