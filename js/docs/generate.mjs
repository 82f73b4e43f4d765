// Makes `api.md` from the package's types: `node docs/generate.mjs`. A test checks that it is up to date. It fails at a
// name of which nothing is said.
//
// It uses the compiler API of TypeScript 5; TypeScript 7 has none that is stable.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import ts from "typescript5";

const docs = dirname(fileURLToPath(import.meta.url));
const REFERENCE = join(docs, "api.md");

/** The entries of the package that have types of their own, and what is said of each. */
const ENTRIES = [
  ["index.d.ts", "@colloquy/sdk"],
  ["react.d.ts", "@colloquy/sdk/react"],
];

/** The reference of all entries, as Markdown. */
export function reference() {
  const seen = new Map();
  const parts = ENTRIES.map(([file, name]) => [join(docs, "..", "src", file), name])
    .filter(([path]) => existsSync(path))
    .map(([path, name]) => entry(name, path, seen));
  return [
    "# API reference",
    "Made from the types of the package by `node docs/generate.mjs`. Every name is an export of the module it stands under.",
    ...parts.flat(),
  ].join("\n\n") + "\n";
}

function entry(name, path, seen) {
  const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const exported = source.statements.filter(
    (node) => node.name && node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword),
  );
  // What is called comes before what it takes and gives.
  const called = exported.filter((node) => ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node));
  const others = exported.filter((node) => !called.includes(node));
  const sections = grouped([...called, ...others]);
  const names = [...sections.keys()].map((section) => `[\`${section}\`](#${anchor(section, seen)})`);
  return [`## ${name}`, names.join(" · "), ...[...sections].flatMap(([section, nodes]) => describe(section, nodes))];
}

/** The anchor of a heading; names that differ in case alone are numbered, as GitHub does. */
function anchor(heading, seen) {
  const name = heading.toLowerCase();
  const count = seen.get(name) ?? 0;
  seen.set(name, count + 1);
  return count === 0 ? name : `${name}-${count}`;
}

/** Overloads stand together under their name. */
function grouped(nodes) {
  const groups = new Map();
  for (const node of nodes) {
    const name = ts.isConstructorDeclaration(node) ? "constructor" : node.name.getText();
    groups.set(name, [...(groups.get(name) ?? []), node]);
  }
  return groups;
}

function describe(name, nodes) {
  const [node] = nodes;
  const heading = `### ${name}`;
  if (ts.isClassDeclaration(node)) {
    const members = [...grouped(node.members)].flatMap(([member, overloads]) => operation(`#### ${name}: ${member}`, overloads));
    return [heading, said(node), ...members];
  }
  if (ts.isFunctionDeclaration(node)) return operation(heading, nodes);
  // One that only joins others has nothing to list.
  if (ts.isInterfaceDeclaration(node) && node.members.length > 0) return [heading, said(node), members(node)];
  return [heading, said(node), alias(node)];
}

/** A function, a method, or a property of a class. */
function operation(heading, nodes) {
  return [
    heading,
    ...nodes.flatMap((node) => [block(node), said(node), parameters(node)]).filter(Boolean),
  ];
}

function parameters(node) {
  const tags = (node.parameters ?? []).flatMap((given) => ts.getJSDocParameterTags(given));
  return tags.map((tag) => `- \`${tag.name.getText()}\`: ${line(ts.getTextOfJSDocComment(tag.comment))}`).join("\n");
}

function members(node) {
  const rows = node.members.map((member) => {
    const optional = member.questionToken ? "?" : "";
    const name = `${member.name.getText()}${optional}`;
    if (!ts.isMethodSignature(member)) return [code(name), code(member.type.getText()), line(comment(member))];
    const given = member.parameters.map((parameter) => parameter.getText()).join(", ");
    return [code(`${name}(${given})`), code(member.type.getText()), line(comment(member))];
  });
  return table(["name", "type", "meaning"], rows);
}

/** A union whose members are explained is a table, any other type is its text. */
function alias(node) {
  if (ts.isTypeAliasDeclaration(node) && ts.isUnionTypeNode(node.type)) {
    const text = node.getSourceFile().text;
    let from = node.name.end;
    const rows = node.type.types.map((member) => {
      // The comment stands before the bar, which the compiler counts to nobody.
      const [, words] = text.slice(from, member.getStart()).match(/\/\*\*([\s\S]*?)\*\//) ?? [];
      from = member.end;
      return [code(member.getText()), line(words?.replace(/^\s*\*/gm, ""))];
    });
    if (rows.some(([, words]) => words)) return table(["value", "meaning"], rows);
  }
  return block(node);
}

/** A declaration as it stands in the types, without its comment. */
function block(node) {
  // What stands in a class is indented there.
  const text = node.getText().replace(/^export /, "").replaceAll(ts.isClassElement(node) ? "\n  " : "\n", "\n");
  return `\`\`\`ts\n${text}\n\`\`\``;
}

/** What the last comment before a declaration says; paragraphs stay apart, and code stays as it is. */
function comment(node) {
  const paragraphs = (ts.getTextOfJSDocComment(node.jsDoc?.at(-1)?.comment) ?? "").split(/\n\s*\n/);
  return paragraphs.map((text) => (text.startsWith("```") ? text : line(text))).join("\n\n");
}

/** The comment of what must not go without one. */
function said(node) {
  const words = comment(node);
  if (!words) throw new Error(`nothing is said about ${node.getText()}`);
  return words;
}

function line(text) {
  return (text ?? "").replace(/\s+/g, " ").trim();
}

function code(text) {
  return `\`${line(text)}\``;
}

function table(columns, rows) {
  for (const [name, ...cells] of rows) if (cells.includes("")) throw new Error(`nothing is said about ${name}`);
  const row = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [row(columns), row(columns.map(() => "---")), ...rows.map(row)].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) writeFileSync(REFERENCE, reference());
