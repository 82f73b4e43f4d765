// Markdown as elements. Nothing of the text becomes HTML.

import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";

import { type MarkdownNode, readMarkdown } from "../documents/markdown";

type Node = Exclude<MarkdownNode, string>;

const rendered = (nodes: MarkdownNode[]): ComponentChildren[] => nodes.map((node, place) => <Shown key={place} of={node} />);

function Cells({ of, isHead }: { of: Node; isHead: boolean }) {
  const cells = of.children.map((cell, place) => {
    const children = typeof cell === "string" ? cell : rendered(cell.children);
    return isHead ? <th key={place} scope="col">{children}</th> : <td key={place}>{children}</td>;
  });
  return <tr>{cells}</tr>;
}

/** Headings begin below those of the page. */
function Heading({ of }: { of: Node }) {
  const Level = `h${Math.min((of.level ?? 1) + 2, 6)}` as "h3";
  return <Level>{rendered(of.children)}</Level>;
}

function Grid({ of }: { of: Node }) {
  const rows = of.children.filter((row) => typeof row !== "string");
  return (
    <table>
      <thead>{rows.filter(({ kind }) => kind === "head").map((row, place) => <Cells key={place} of={row} isHead />)}</thead>
      <tbody>{rows.filter(({ kind }) => kind === "row").map((row, place) => <Cells key={place} of={row} isHead={false} />)}</tbody>
    </table>
  );
}

function List({ of: { isOrdered, start, children } }: { of: Node }) {
  return isOrdered ? <ol start={start ?? 1}>{rendered(children)}</ol> : <ul>{rendered(children)}</ul>;
}

const ELEMENTS: Record<Node["kind"], (of: Node) => JSX.Element> = {
  paragraph: ({ children }) => <p>{rendered(children)}</p>,
  heading: (of) => <Heading of={of} />,
  quote: ({ children }) => <blockquote>{rendered(children)}</blockquote>,
  list: (of) => <List of={of} />,
  item: ({ children }) => <li>{rendered(children)}</li>,
  "code-block": ({ children }) => <pre tabIndex={0}>{children.join("")}</pre>,
  table: (of) => <Grid of={of} />,
  head: (of) => <Cells of={of} isHead />,
  row: (of) => <Cells of={of} isHead={false} />,
  rule: () => <hr />,
  strong: ({ children }) => <strong>{rendered(children)}</strong>,
  emphasis: ({ children }) => <em>{rendered(children)}</em>,
  deleted: ({ children }) => <del>{rendered(children)}</del>,
  code: ({ children }) => <code>{children.join("")}</code>,
  link: ({ href = "", children }) => (
    <a href={href} rel="noreferrer noopener nofollow" target="_blank">
      {rendered(children)}
    </a>
  ),
  image: ({ children }) => <span class="picture">Image: {children.join("") || "no description"}</span>,
  break: () => <br />,
  html: ({ children }) => <span class="source">{children.join("")}</span>,
};

function Shown({ of }: { of: MarkdownNode }) {
  return typeof of === "string" ? <>{of}</> : ELEMENTS[of.kind](of);
}

/** A text of bounded length, formatted. */
export function Markdown({ source }: { source: string }) {
  const nodes = useMemo(() => readMarkdown(source), [source]);
  return (
    <div class="markdown" dir="auto">
      {rendered(nodes)}
    </div>
  );
}
