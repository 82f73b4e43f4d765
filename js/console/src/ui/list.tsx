// Lists that are read page by page, as tables.

import type { ComponentChildren } from "preact";

import type { Pages } from "./resource";
import { Rows } from "./rows";
import { More, Shown, Table } from "./states";

/** A column. `isNumber` aligns it for numbers; `isHidden` hides its title from sight. */
export type Column<T> = { title: string; isNumber?: boolean; isHidden?: boolean; class?: string; cell: (entry: T) => ComponentChildren };

/** Returns the attribute of the classes of a cell, if there are any. */
function classesOf({ isNumber, class: own }: Pick<Column<never>, "isNumber" | "class">): { class?: string } {
  const classes = [isNumber && "number", own].filter(Boolean).join(" ");
  return classes === "" ? {} : { class: classes };
}

type RowProps<T> = { of: T; columns: readonly Column<T>[]; isOver: boolean };

/** A row, whose first cell names it. */
function Row<T>({ of, columns, isOver }: RowProps<T>) {
  return (
    <tr class={isOver ? "over" : ""}>
      {columns.map((column, place) =>
        place === 0 ? (
          <th key={column.title} scope="row" {...classesOf(column)}>
            {column.cell(of)}
          </th>
        ) : (
          <td key={column.title} {...classesOf(column)}>
            {column.cell(of)}
          </td>
        ),
      )}
    </tr>
  );
}

type ListProps<T> = {
  of: Pages<T>;
  label: string;
  columns: readonly Column<T>[];
  keyOf: (entry: T) => string;
  /** Returns true for entries that are no longer in use. */
  isOver?: (entry: T) => boolean;
  /** Content above the table, such as a count. */
  above?: (entries: readonly T[]) => ComponentChildren;
  /** An empty list: the next step. */
  children: ComponentChildren;
};

/** A list with a row for each entry. */
export function List<T>({ of, label, columns, keyOf, isOver, above, children }: ListProps<T>) {
  return (
    <Shown of={of}>
      {({ entries, next }) =>
        entries.length === 0 ? (
          <>{children}</>
        ) : (
          <>
            {above?.(entries)}
            <Table label={label}>
              <thead>
                <tr>
                  {columns.map(({ title, isNumber = false, isHidden }) => (
                    <th key={title} scope="col" {...classesOf({ isNumber })}>
                      {isHidden ? <span class="hidden">{title}</span> : title}
                    </th>
                  ))}
                </tr>
              </thead>
              <Rows of={entries} hasMore={next !== null} onView={of.view}>
                {(entry) => <Row key={keyOf(entry)} of={entry} columns={columns} isOver={isOver?.(entry) ?? false} />}
              </Rows>
            </Table>
            <More next={next} isLoading={of.isLoading.value} more={of.more} isEndless={!of.problem.value} />
          </>
        )
      }
    </Shown>
  );
}

/** A value that is absent. */
export const ABSENT = <span class="none">—</span>;
