// Icons of Lucide. The build makes one file of those that are named here.

export const ICONS = [
  "activity", "arrow-down", "arrow-left", "arrow-up", "audio-lines", "book-open", "building-2", "chart-column", "check", "chevron-down",
  "chevron-right", "circle-alert", "clock", "cloud-off", "command", "copy", "download", "file-text", "folder", "folder-input", "gauge", "history", "key-round",
  "library", "log-out", "menu", "message-square-text", "mic", "moon", "pause", "pencil", "phone", "phone-off", "play", "plus", "refresh-cw",
  "scissors", "search", "server", "settings", "sliders-horizontal", "square", "sun", "trash-2", "triangle-alert", "tv", "undo-2", "upload", "user-round",
  "wand-sparkles", "webhook", "x",
] as const;

export type IconName = (typeof ICONS)[number];

/** A decorative icon: the text beside it, or the label of its button, has its meaning. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" aria-hidden="true" focusable="false">
      <use href={`${ICONS_URL}#${name}`} />
    </svg>
  );
}
