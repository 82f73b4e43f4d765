// Markdown as a tree of what is shown. HTML is text, addresses have a checked scheme, images are their descriptions.

import type { SyntaxNode } from "@lezer/common";
import { GFM, parser } from "@lezer/markdown";

/** The kind of element that shows a node. */
export type Kind =
  | "paragraph" | "heading" | "quote" | "list" | "item" | "code-block" | "table" | "row" | "head" | "rule" | "strong" | "emphasis" | "deleted" | "code"
  | "link" | "image" | "break" | "html";
export type MarkdownNode =
  | string
  | { kind: Kind; children: MarkdownNode[]; level?: number; start?: number; isOrdered?: boolean; href?: string };

/** Length of a part that is previewed at a time, in UTF-16 units: the parser needs much longer for some texts that are made for that. */
const PART = 30_000;
/** Distance behind a limit at which a part may end, at the end of a paragraph. */
const SLACK = 2_000;
/** Deeper nodes are shown as their source. */
const MAX_DEPTH = 60;

const SCHEMES = ["http:", "https:", "mailto:"];
const markdown = parser.configure([GFM]);

/** Returns where the part of a text begins that follows `limit`. */
function border(text: string, limit: number): number {
  if (limit <= 0) return 0;
  if (limit >= text.length) return text.length;
  const paragraph = text.slice(limit, limit + SLACK).indexOf("\n\n");
  if (paragraph >= 0) return limit + paragraph + 2;
  const line = text.slice(limit, limit + SLACK).indexOf("\n");
  if (line >= 0) return limit + line + 1;
  return /[\uDC00-\uDFFF]/.test(text.charAt(limit)) ? limit + 1 : limit;
}

/** A part of a text: its number from 0, and how many there are. */
export type Part = { text: string; index: number; count: number };

/** Returns the part of a text that a position is in. */
export function partAt(text: string, position: number): Part {
  const count = Math.max(1, Math.ceil(text.length / PART));
  let index = Math.min(Math.floor(position / PART), count - 1);
  if (index > 0 && position < border(text, index * PART)) index -= 1;
  const end = index === count - 1 ? text.length : border(text, (index + 1) * PART);
  return { text: text.slice(border(text, index * PART), end), index, count };
}

/** Returns an address that a link may have, or null. */
export function checkedAddress(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, href } = new URL(address);
  return SCHEMES.includes(protocol) ? href : null;
}

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00A0", copy: "©", reg: "®", ndash: "–", mdash: "—", hellip: "…" };

function entity(source: string): string {
  const name = source.slice(1, -1);
  if (!name.startsWith("#")) return NAMED[name] ?? source;
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\uFFFD";
}

const unescaped = (text: string) => text.replaceAll(/\\([!-/:-@[-`{-~])/g, "$1").replaceAll(/&#?\w+;/g, entity);

const KINDS: Record<string, Kind> = {
  Paragraph: "paragraph", Blockquote: "quote", BulletList: "list", OrderedList: "list", ListItem: "item", Task: "paragraph",
  StrongEmphasis: "strong", Emphasis: "emphasis", Strikethrough: "deleted", Table: "table", TableHeader: "head", TableRow: "row",
};
/** Nodes that are marks of others, or that are looked up. */
const HIDDEN = /^(\w*Mark|TableDelimiter|LinkReference|CodeInfo|Comment|CommentBlock|ProcessingInstruction|ProcessingInstructionBlock)$/;
const MARKERS = { checked: "☑", unchecked: "☐" };
/** Nodes of blocks, between which there is no text. */
const BLOCKS = /^(Document|Blockquote|BulletList|OrderedList|ListItem|Table|TableHeader|TableRow)$/;

class Reader {
  /** Addresses of link references, by their labels. */
  readonly #references = new Map<string, string>();

  constructor(private readonly source: string) {}

  read(): MarkdownNode[] {
    const tree = markdown.parse(this.source);
    tree.iterate({
      enter: ({ name, node }) => {
        if (name !== "LinkReference") return;
        const [label, url] = [node.getChild("LinkLabel"), node.getChild("URL")];
        const key = label && this.#labelOf(label);
        if (key && url && !this.#references.has(key)) this.#references.set(key, this.#address(url));
      },
    });
    return this.#children(tree.topNode, 0);
  }

  #text(node: { from: number; to: number }): string {
    return this.source.slice(node.from, node.to);
  }

  #labelOf(node: { from: number; to: number }): string {
    return this.#text(node).replace(/^\[|\]$/g, "").trim().replaceAll(/\s+/g, " ").toLowerCase();
  }

  #address(url: SyntaxNode): string {
    return unescaped(this.#text(url).replace(/^<|>$/g, ""));
  }

  #children(of: SyntaxNode, depth: number, from = of.from, to = of.to): MarkdownNode[] {
    const found: MarkdownNode[] = [];
    const isBlock = BLOCKS.test(of.name);
    let at = from;
    const fill = (end: number) => {
      if (!isBlock && end > at) found.push(this.source.slice(at, end));
    };
    for (let child = of.firstChild; child; child = child.nextSibling) {
      if (child.to <= from || child.from >= to) continue;
      fill(child.from);
      at = child.to;
      const node = this.#node(child, depth + 1);
      if (node !== null) found.push(node);
    }
    fill(to);
    return found;
  }

  #node(node: SyntaxNode, depth: number): MarkdownNode | null {
    const { name } = node;
    if (HIDDEN.test(name)) return null;
    if (depth > MAX_DEPTH) return this.#text(node);
    const heading = /^(?:ATX|Setext)Heading(\d)$/.exec(name);
    if (heading) return { kind: "heading", level: Number(heading[1]), children: this.#trimmed(this.#children(node, depth)) };
    switch (name) {
      case "FencedCode":
      case "CodeBlock":
        return { kind: "code-block", children: [node.getChildren("CodeText").map((part) => this.#text(part)).join("")] };
      case "InlineCode":
        return { kind: "code", children: [this.#text(node).replace(/^`+|`+$/g, "").replace(/^ (.*[^ ].*) $/s, "$1")] };
      case "HTMLBlock":
      case "HTMLTag":
        return { kind: "html", children: [this.#text(node)] };
      case "Escape":
        return this.#text(node).slice(1);
      case "Entity":
        return entity(this.#text(node));
      case "TaskMarker":
        return /x/i.test(this.#text(node)) ? MARKERS.checked : MARKERS.unchecked;
      case "HorizontalRule":
        return { kind: "rule", children: [] };
      case "HardBreak":
        return { kind: "break", children: [] };
      case "TableCell":
        return { kind: "item", children: this.#children(node, depth) };
      case "URL":
        return this.#linked(this.#text(node), [this.#text(node)]);
      case "Autolink":
        return this.#linked(this.#text(node).slice(1, -1), [this.#text(node).slice(1, -1)]);
      case "Link":
      case "Image":
        return this.#link(node, depth);
    }
    const kind = KINDS[name];
    if (!kind) return this.#text(node);
    const children = this.#children(node, depth);
    if (name !== "OrderedList") return { kind, children };
    const start = Number.parseInt(this.source.slice(node.from, node.from + 10), 10);
    return { kind, isOrdered: true, start: Number.isNaN(start) ? 1 : start, children };
  }

  #link(node: SyntaxNode, depth: number): MarkdownNode {
    const [open, close] = node.getChildren("LinkMark");
    const [url, label] = [node.getChild("URL"), node.getChild("LinkLabel")];
    // A label between brackets alone is a reference, too.
    const inner = { from: open?.to ?? node.from, to: close?.from ?? node.to };
    const address = url ? this.#address(url) : this.#references.get(this.#labelOf(label && label.to - label.from > 2 ? label : inner));
    if (address === undefined) return this.#text(node);
    const children = this.#children(node, depth, inner.from, inner.to);
    return node.name === "Image" ? { kind: "image", children: [this.source.slice(inner.from, inner.to)] } : this.#linked(address, children);
  }

  /** Returns a link, or its content if the address has another scheme. */
  #linked(address: string, children: MarkdownNode[]): MarkdownNode {
    const whole = /^www\./i.test(address) ? `https://${address}` : /^[^\s/:@]+@[^\s/:@]+$/.test(address) ? `mailto:${address}` : address;
    const href = checkedAddress(whole);
    return href ? { kind: "link", href, children } : { kind: "html", children: children.every((child) => typeof child === "string") ? children : [address] };
  }

  #trimmed(nodes: MarkdownNode[]): MarkdownNode[] {
    const [first] = nodes;
    return typeof first === "string" ? [first.trimStart(), ...nodes.slice(1)] : nodes;
  }
}

/** Reads a part of a text. */
export function readMarkdown(source: string): MarkdownNode[] {
  return new Reader(source).read();
}
