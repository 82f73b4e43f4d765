//! Merged cells: what heads several columns or rows stands above each of them, so that every row and column can be read by itself.

use undoc::{Cell, Row, Table};

/// The longest text that is repeated, in characters: a label, and no paragraph.
const LONGEST: usize = 80;
/// How many places a table has at most whose cells are repeated.
const MOST_PLACES: usize = 100_000;

/// Writes what a merged cell holds into every place that it covers.
pub(super) fn repeat_merged(table: &mut Table) {
    let width = table.column_count();
    let height = table.rows.len();
    if !table.has_merged_cells() || width.saturating_mul(height) > MOST_PLACES {
        return;
    }
    let columns = table.cell_columns();
    let mut places: Vec<Vec<Option<Cell>>> = vec![vec![None; width]; height];
    for (row, (columns, cells)) in columns.iter().zip(&mut table.rows).enumerate() {
        for (column, mut cell) in columns.iter().zip(std::mem::take(&mut cells.cells)) {
            let (right, down) = (cell.col_span.max(1) as usize, cell.row_span.max(1) as usize);
            (cell.col_span, cell.row_span) = (1, 1);
            // What heads all columns is a title.
            let is_title = *column == 0 && right >= width;
            let copy =
                (!is_title && cell.plain_text().chars().nth(LONGEST).is_none()).then(|| Cell {
                    nested_tables: vec![],
                    ..cell.clone()
                });
            for places in places.iter_mut().skip(row).take(down) {
                for place in places.iter_mut().skip(*column).take(right) {
                    place.clone_from(&copy);
                }
            }
            if let Some(place) = places[row].get_mut(*column) {
                *place = Some(cell);
            }
        }
    }
    for (row, places) in table.rows.iter_mut().zip(places) {
        let Row { cells, .. } = row;
        *cells = places.into_iter().map(Option::unwrap_or_default).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(table: &Table) -> Vec<Vec<String>> {
        let row = |row: &Row| row.cells.iter().map(Cell::plain_text).collect();
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn labels_stand_above_all_that_they_head() {
        let cell = |text: &str, col_span, row_span| Cell {
            col_span,
            row_span,
            ..Cell::with_text(text)
        };
        let row = |cells: Vec<Cell>| Row {
            cells,
            ..Row::new()
        };
        let long = "x".repeat(LONGEST + 1);
        let mut table = Table::new();
        table.add_row(row(vec![
            cell("", 1, 1),
            cell("2023", 2, 1),
            cell("sum", 9, 1),
        ]));
        table.add_row(row(vec![cell("R", 1, 9), cell("a", 1, 1), cell("b", 1, 1)]));
        table.add_row(row(vec![cell(&long, 2, 1)]));
        repeat_merged(&mut table);
        let texts = texts(&table);
        assert_eq!(texts[0][..4], ["", "2023", "2023", "sum"]);
        assert_eq!(texts[1][..3], ["R", "a", "b"]);
        assert_eq!(texts[2][..3], ["R", &long, ""]);
    }

    #[test]
    fn titles_and_tables_without_end_stay_as_they_are() {
        let wide = |rows: usize| {
            let mut table = Table::new();
            for _ in 0..rows {
                table.add_row(Row {
                    cells: vec![Cell {
                        col_span: u32::MAX,
                        ..Cell::with_text("x")
                    }],
                    ..Row::new()
                });
            }
            repeat_merged(&mut table);
            table
        };
        let title = wide(1);
        assert_eq!(title.plain_text().matches('x').count(), 1);
        assert!(
            wide(MOST_PLACES)
                .rows
                .iter()
                .all(|row| row.cells.len() == 1)
        );
    }
}
