//! Formulas of a sheet without a stored result, as programs write them that compute none. Results alone are read, so these cells are empty.
//! Source: ECMA-376 part 1, sections 18.3.1.4 (`c`), 18.3.1.40 (`f`) and 18.3.1.96 (`v`).

use memchr::memmem;
use quick_xml::events::{BytesStart, Event};

use super::{attributes, events};

/// A cell while it is read.
#[derive(Default)]
struct Cell {
    /// True if its result is text, which may be empty.
    is_text: bool,
    has_formula: bool,
    has_result: bool,
    is_in_value: bool,
}

impl Cell {
    fn of(start: &BytesStart<'_>) -> Self {
        let is_text = attributes(start).any(|one| one.key.as_ref() == "t" && &*one.value == "str");
        Self {
            is_text,
            ..Self::default()
        }
    }

    fn start(&mut self, name: &str) {
        match name {
            "f" => self.has_formula = true,
            "v" => {
                self.is_in_value = true;
                self.has_result |= self.is_text;
            }
            // Text in the cell itself.
            "is" => self.has_result = true,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.has_result |= self.is_in_value && !text.trim().is_empty();
    }
}

/// Counts the cells of a sheet that have a formula and no result.
pub(super) fn without_result(sheet: &str) -> u32 {
    let has = |part: &[u8]| memmem::find(sheet.as_bytes(), part).is_some();
    if !has(b"<f") && !has(b":f") {
        return 0;
    }
    let (mut count, mut cell) = (0_u32, Cell::default());
    for event in events(sheet) {
        match event {
            Event::Start(start) => match start.local_name().as_ref() {
                "c" => cell = Cell::of(&start),
                name => cell.start(name),
            },
            // An element without content begins and ends at once. Such a cell has no formula.
            Event::Empty(start) => {
                cell.start(start.local_name().as_ref());
                cell.is_in_value = false;
            }
            Event::Text(text) => cell.text(&text),
            Event::CData(text) => cell.text(&text),
            Event::GeneralRef(reference) => cell.text(&reference),
            Event::End(end) => match end.local_name().as_ref() {
                "v" => cell.is_in_value = false,
                "c" => {
                    let cell = std::mem::take(&mut cell);
                    let is_missing = cell.has_formula && !cell.has_result;
                    count = count.saturating_add(is_missing.into());
                }
                _ => {}
            },
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(cells: &str) -> u32 {
        without_result(&format!("<sheetData><row>{cells}</row></sheetData>"))
    }

    #[test]
    fn formulas_without_a_result_are_counted() {
        for missing in [
            "<c r='A1'><f>1+1</f></c>",
            "<c><f>1+1</f><v/></c>",
            "<c><f>1+1</f><v></v></c>",
            "<c t='n'><f>1+1</f><v> </v></c>",
            "<c t='s'><f>A1</f><v/></c>",
            "<c t='b'><f>TRUE()</f><v/></c>",
            // A formula that is shared or computed for several cells.
            "<c><f t='shared' si='0'/><v></v></c>",
            "<c t='str'><f>A1</f></c>",
            "<x:c><x:f>1+1</x:f><x:v/></x:c>",
        ] {
            assert_eq!(count(missing), 1, "{missing}");
            let among = format!("<c><f>1</f><v>1</v></c>{missing}<c/>{missing}<c><v>2</v></c>");
            assert_eq!(count(&among), 2, "{missing}");
        }
    }

    #[test]
    fn results_are_there_also_where_they_are_empty_text() {
        for there in [
            "<c><f>1+1</f><v>2</v></c>",
            "<c><f>1-1</f><v>0</v></c>",
            "<c t='str'><f>\"\"</f><v></v></c>",
            "<c t='str'><f>\"\"</f><v/></c>",
            "<c t='str'><f>A1</f><v>&amp;</v></c>",
            "<c t='e'><f>1/0</f><v>#DIV/0!</v></c>",
            "<c t='inlineStr'><f>A1</f><is><t>a</t></is></c>",
            "<c><f>1+1</f><v><![CDATA[2]]></v></c>",
            "<c><v/></c><c/><c s='1'></c>",
            // Formulas of other things than cells.
            "<x:sparkline><xm:f>S!A1</xm:f></x:sparkline><c><v>1</v></c>",
        ] {
            assert_eq!(count(there), 0, "{there}");
        }
        assert_eq!(without_result(""), 0);
        assert_eq!(without_result("<c><f>1<"), 0);
    }
}
