//! Form fields of Word from before content controls: check boxes and drop-down lists, whose state stands in the data of the field and not in its text.
//! Content controls hold theirs as text. Source: ECMA-376 part 1, section 17.16.

use quick_xml::events::BytesStart;

use super::relations::value;

/// How many entries a drop-down list has at most; Word allows 25.
const MOST_ENTRIES: usize = 1_000;

/// The data of a form field, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct FormField {
    kind: Option<Kind>,
    default: Option<String>,
    chosen: Option<String>,
    entries: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    CheckBox,
    DropDown,
}

impl FormField {
    /// Takes what an element says of the field.
    pub(super) fn start(&mut self, name: &str, start: &BytesStart<'_>) {
        // A check box says "true" by an element without a value.
        let said = || value(start, "val").or_else(|| Some("1".to_owned()));
        match name {
            "w:ffData" => *self = Self::default(),
            "w:checkBox" => self.kind = Some(Kind::CheckBox),
            "w:ddList" => self.kind = Some(Kind::DropDown),
            "w:default" => self.default = said(),
            "w:checked" | "w:result" => self.chosen = said(),
            "w:listEntry" if self.entries.len() < MOST_ENTRIES => self.entries.extend(said()),
            _ => {}
        }
    }

    /// Returns what the field shows, and forgets it.
    pub(super) fn take_text(&mut self) -> Option<String> {
        let field = std::mem::take(self);
        let state = field.chosen.or(field.default).unwrap_or_default();
        match field.kind? {
            Kind::CheckBox => {
                let shown = match state.as_str() {
                    "1" | "true" | "on" => "☒",
                    _ => "☐",
                };
                Some(shown.to_owned())
            }
            Kind::DropDown => {
                let place: usize = state.parse().unwrap_or_default();
                field.entries.into_iter().nth(place)
            }
        }
    }
}
