// Licences of the npm packages that a bundle contains.

import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

/** Licences that a package may have. */
const ALLOWED = ["MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Apache-2.0", "0BSD"];
const MODULES = "node_modules/";

/** Returns the folders of the packages that have code in the outputs of a metafile of esbuild. */
export function packagesIn({ outputs }) {
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs).filter((file) => inputs[file].bytesInOutput > 0));
  const folders = files.map((file) => {
    const begin = file.lastIndexOf(MODULES) + MODULES.length;
    if (begin < MODULES.length) return null;
    const parts = file.slice(begin).split("/");
    return file.slice(0, begin) + parts.slice(0, parts[0].startsWith("@") ? 2 : 1).join("/");
  });
  return [...new Set(folders.filter(Boolean))].sort();
}

/** Returns true if one of the licences of an SPDX expression without `AND` is allowed. */
const isAllowed = (license) => typeof license === "string" && license.replaceAll(/[()]/g, "").split(" OR ").some((one) => ALLOWED.includes(one));

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  if (!isAllowed(license)) throw new Error(`the licence of ${name} is not allowed: ${JSON.stringify(license)}`);
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file)).sort();
  if (!files.some((file) => !/^notice/i.test(file))) throw new Error(`${name} has no text of its licence`);
  const texts = files.map((file) => readFileSync(path.join(folder, file), "utf8").replaceAll("\r\n", "\n").trim());
  return [`${name} ${version}`, `Licence: ${license}`, "", texts.join("\n\n")].join("\n");
}

const partOf = (file) => [`Part of ${path.basename(path.dirname(path.dirname(file)))}`, "", readFileSync(file, "utf8").replaceAll("\r\n", "\n").trim()].join("\n");

/**
 * Returns name, version, licence and licence text of packages, and the texts of licences of `parts` of them. Fails if a package has no text, or a licence
 * that is not allowed.
 */
export function licenseTexts(folders, parts = []) {
  return `${[...folders.map(licenseOf), ...parts.map(partOf)].join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}
