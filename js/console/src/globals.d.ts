/** The address of the icons, set by the build. */
declare const ICONS_URL: string;
