/** The address of the icons, set by the build. */
declare const ICONS_URL: string;

interface HTMLElement {
  /** Shows a popover that `source` anchors. */
  showPopover(options: { source: HTMLElement }): void;
}
