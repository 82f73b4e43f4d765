//! The tables of slides: shapes that stand in rows and columns. Source: [MS-ODRAW], sections 2.2.39 and 2.3.4.

use undoc::{Cell, Paragraph, Row, Table, TextRun};

use super::records::Budget;
use crate::error::ExtractError;

/// The most rows and columns of a table; what has more is no table of PowerPoint's.
const MOST_ROWS: usize = 1_000;
const MOST_COLUMNS: usize = 100;
/// Edges that lie nearer than this part of the table are one.
const PARTS: i64 = 2_000;

/// A shape that is a cell: where its edges are, and what it holds.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) left: i64,
    pub(super) top: i64,
    pub(super) right: i64,
    pub(super) bottom: i64,
    pub(super) content: Vec<Paragraph>,
}

/// Where rows or columns begin.
struct Edges {
    begins: Vec<i64>,
    /// How far apart edges may lie that are one.
    slack: i64,
}

impl Edges {
    fn of(sides: impl Iterator<Item = (i64, i64)> + Clone) -> Self {
        let mut begins: Vec<i64> = sides.clone().map(|(begin, _)| begin).collect();
        begins.sort_unstable();
        let end = sides.map(|(_, end)| end).max().unwrap_or_default();
        let slack = (end - begins.first().copied().unwrap_or_default()) / PARTS;
        begins.dedup_by(|next, kept| *next - *kept <= slack);
        Self { begins, slack }
    }

    /// The row or column that a cell begins in, and over how many it reaches.
    fn span(&self, (begin, end): (i64, i64)) -> (usize, usize) {
        let first = self.begins.partition_point(|edge| *edge <= begin);
        let first = first.saturating_sub(1);
        let behind = self.begins.partition_point(|edge| edge + self.slack < end);
        (first, behind.saturating_sub(first).max(1))
    }
}

/// The rows and columns of cells.
pub(super) struct Grid {
    rows: Edges,
    columns: Edges,
}

impl Grid {
    /// None where there is no cell, or there are too many rows or columns.
    pub(super) fn of(shapes: &[Shape]) -> Option<Self> {
        let grid = Self {
            rows: Edges::of(shapes.iter().map(|shape| (shape.top, shape.bottom))),
            columns: Edges::of(shapes.iter().map(|shape| (shape.left, shape.right))),
        };
        let (height, width) = grid.size();
        let is_one = (1..=MOST_ROWS).contains(&height) && (1..=MOST_COLUMNS).contains(&width);
        is_one.then_some(grid)
    }

    fn size(&self) -> (usize, usize) {
        (self.rows.begins.len(), self.columns.begins.len())
    }

    /// The table of the cells. A cell that begins where another one stands is added to it, and one that reaches into another one keeps the
    /// place where it begins.
    pub(super) fn table(
        &self,
        mut shapes: Vec<Shape>,
        budget: &mut Budget,
    ) -> Result<Table, ExtractError> {
        let (height, width) = self.size();
        budget.cells(height * width)?;
        shapes.sort_by_key(|shape| (shape.top, shape.left));
        // What each place holds: nothing yet, a cell, or a part of a cell that is elsewhere.
        let mut places: Vec<Option<Place>> = vec![];
        places.resize_with(height * width, || None);
        for shape in shapes {
            let (row, mut down) = self.rows.span((shape.top, shape.bottom));
            let (column, mut right) = self.columns.span((shape.left, shape.right));
            let own = row * width + column;
            match &mut places[own] {
                None => {}
                Some(Place::Cell(cell)) => {
                    cell.content.extend(shape.content);
                    continue;
                }
                Some(Place::Covered(by)) => {
                    let by = *by;
                    if let Some(Place::Cell(cell)) = &mut places[by] {
                        cell.content.extend(shape.content);
                    }
                    continue;
                }
            }
            // Cells come from the top down: one that reaches into another meets it in its first row.
            let first_row = &places[row * width..][column..column + right];
            if first_row.iter().any(Option::is_some) {
                (down, right) = (1, 1);
            }
            for row in row..row + down {
                for place in &mut places[row * width..][column..column + right] {
                    *place = Some(Place::Covered(own));
                }
            }
            places[own] = Some(Place::Cell(Cell {
                content: shape.content,
                col_span: u32::try_from(right).unwrap_or(1),
                row_span: u32::try_from(down).unwrap_or(1),
                ..Cell::default()
            }));
        }
        let mut table = Table::new();
        let mut places = places.into_iter();
        for _ in 0..height {
            let cells = places.by_ref().take(width).filter_map(|place| match place {
                Some(Place::Cell(cell)) => Some(with_numbers(cell)),
                Some(Place::Covered(_)) => None,
                None => Some(Cell::new()),
            });
            table.add_row(Row {
                cells: cells.collect(),
                ..Row::new()
            });
        }
        Ok(table)
    }
}

enum Place {
    Cell(Cell),
    /// By the cell of another place.
    Covered(usize),
}

/// A cell is one line, which has no lists: the numbers of their items are text.
fn with_numbers(mut cell: Cell) -> Cell {
    for paragraph in &mut cell.content {
        if let Some(number) = paragraph.list_info.take().and_then(|info| info.number) {
            let number = TextRun::plain(format!("{number}. "));
            paragraph.runs.insert(0, number);
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Bounds;

    fn shape(text: &str, [left, top, right, bottom]: [i64; 4]) -> Shape {
        Shape {
            left,
            top,
            right,
            bottom,
            content: vec![Paragraph::with_text(text)],
        }
    }

    fn rows(shapes: Vec<Shape>) -> Vec<Vec<(String, u32, u32)>> {
        let mut budget = Budget::new(&Bounds::default());
        let grid = Grid::of(&shapes).unwrap();
        let table = grid.table(shapes, &mut budget).unwrap();
        let cell = |cell: &Cell| (cell.plain_text(), cell.col_span, cell.row_span);
        let row = |row: &Row| row.cells.iter().map(cell).collect();
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn cells_reach_over_the_rows_and_columns_between_their_edges() {
        let cell = |text: &str, columns, rows| (text.to_owned(), columns, rows);
        // Edges are rounded.
        let shapes = vec![
            shape("c", [2_001, 5_000, 4_000, 10_000]),
            shape("a", [0, 0, 1_999, 10_000]),
            shape("b", [2_000, 0, 4_000, 5_000]),
            shape("d", [0, 10_001, 1_000, 15_000]),
            shape("e", [1_000, 10_000, 3_000, 15_000]),
        ];
        assert_eq!(
            rows(shapes),
            [
                vec![cell("a", 2, 2), cell("b", 1, 1)],
                vec![cell("c", 1, 1)],
                vec![cell("d", 1, 1), cell("e", 2, 1)],
            ]
        );
    }

    #[test]
    fn cells_that_overlap_lose_no_text() {
        let shapes = vec![
            shape("a", [10, 0, 20, 20]),
            shape("b", [0, 10, 30, 20]),
            shape("c", [0, 0, 10, 10]),
            shape("d", [20, 10, 30, 20]),
            shape("e", [0, 0, 5, 5]),
            shape("f", [10, 10, 20, 20]),
        ];
        let texts: String = rows(shapes)
            .concat()
            .into_iter()
            .map(|(text, ..)| text)
            .collect();
        let mut letters: Vec<char> = texts.chars().filter(|c| c.is_alphabetic()).collect();
        letters.sort_unstable();
        assert_eq!(letters, ['a', 'b', 'c', 'd', 'e', 'f']);
    }

    #[test]
    fn cells_that_overlap_leave_others_as_they_are() {
        let cell = |text: &str, columns, rows| (text.to_owned(), columns, rows);
        let shapes = vec![
            shape("a", [0, 0, 10, 10]),
            shape("b", [10, 0, 20, 20]),
            // Reaches into the one before.
            shape("c", [0, 10, 30, 20]),
            shape("d", [20, 0, 30, 10]),
            shape("e", [0, 20, 20, 30]),
            shape("f", [20, 20, 30, 30]),
        ];
        assert_eq!(rows(shapes)[2], [cell("e", 2, 1), cell("f", 1, 1)]);
    }

    #[test]
    fn what_is_wider_than_any_table_is_none() {
        let many = (0..=100).map(|at| shape("x", [at * 10, 0, at * 10 + 10, 10]));
        assert!(Grid::of(&many.collect::<Vec<_>>()).is_none());
        assert!(Grid::of(&[]).is_none());
    }
}
