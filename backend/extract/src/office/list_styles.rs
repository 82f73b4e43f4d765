//! Styles of paragraphs that make list items of them, which `undoc` finds in paragraphs only. Source: ECMA-376 part 1, sections
//! 17.3.1.19 (numPr), 17.7.4 (styles) and 17.9.23 (pStyle).

use std::collections::HashMap;

use quick_xml::events::Event;

use super::{events, relations::value};

/// How many styles one is based on, at most.
const LONGEST_CHAIN: usize = 32;
/// The deepest level of a list.
pub(super) const LAST_LEVEL: u8 = 8;

/// The list and the level of paragraphs, by their style.
#[derive(Debug, Default)]
pub(super) struct ListStyles(HashMap<String, (String, u8)>);

/// A style while it is read.
#[derive(Debug, Default)]
struct Style {
    based_on: Option<String>,
    list: Option<String>,
    level: Option<u8>,
    is_heading: bool,
}

impl ListStyles {
    /// Reads the styles and the lists of a document, whose prefixes are those of Office.
    pub(super) fn read(styles: &str, numbering: &str) -> Self {
        let all = all_styles(styles);
        let levels = levels(numbering);
        let list_of = |id: &String| {
            let (mut list, mut level) = (None, None);
            let mut next = Some(id);
            for _ in 0..LONGEST_CHAIN {
                let Some(style) = next.and_then(|id| all.get(id)) else {
                    break;
                };
                // A heading with a number is a heading.
                if style.is_heading {
                    return None;
                }
                list = list.or(style.list.as_ref());
                level = level.or(style.level);
                next = style.based_on.as_ref();
            }
            let level = levels.get(id).copied().or(level).unwrap_or_default();
            // The list 0 is none.
            let list = list.filter(|list| *list != "0")?;
            Some((id.clone(), (list.clone(), level.min(LAST_LEVEL))))
        };
        Self(all.keys().filter_map(list_of).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The list and the level of paragraphs of a style.
    pub(super) fn of(&self, style: &str) -> Option<(&str, u8)> {
        self.0
            .get(style)
            .map(|(list, level)| (list.as_str(), *level))
    }
}

fn all_styles(styles: &str) -> HashMap<String, Style> {
    let mut all = HashMap::new();
    let (mut id, mut style) = (None, Style::default());
    for event in events(styles) {
        match event {
            Event::Start(start) if start.name().as_ref() == "w:style" => {
                id = value(&start, "styleId");
                style = Style::default();
            }
            Event::Start(start) | Event::Empty(start) => {
                let of = || value(&start, "val");
                match start.name().as_ref() {
                    "w:name" => {
                        let name = of().unwrap_or_default().to_lowercase();
                        style.is_heading |= name.starts_with("heading ") || name == "title";
                    }
                    "w:outlineLvl" => style.is_heading |= of().is_some_and(|level| level != "9"),
                    "w:basedOn" => style.based_on = of(),
                    "w:numId" => style.list = of(),
                    "w:ilvl" => style.level = of().and_then(|level| level.parse().ok()),
                    _ => {}
                }
            }
            Event::End(end) if end.name().as_ref() == "w:style" => {
                all.extend(id.take().map(|id| (id, std::mem::take(&mut style))));
            }
            _ => {}
        }
    }
    all
}

/// The levels that lists give to styles.
fn levels(numbering: &str) -> HashMap<String, u8> {
    let mut levels = HashMap::new();
    let mut level = 0;
    for event in events(numbering) {
        if let Event::Start(start) | Event::Empty(start) = event {
            match start.name().as_ref() {
                "w:lvl" => {
                    level = value(&start, "ilvl")
                        .and_then(|level| level.parse().ok())
                        .unwrap_or_default()
                }
                "w:pStyle" => levels.extend(value(&start, "val").map(|style| (style, level))),
                _ => {}
            }
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_inherited_but_by_headings() {
        let style = |id: &str, name: &str, more: &str| {
            format!(
                r#"<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/>{more}</w:style>"#
            )
        };
        let list = |level: &str, id: &str| {
            format!(r#"<w:pPr><w:numPr>{level}<w:numId w:val="{id}"/></w:numPr></w:pPr>"#)
        };
        let styles = [
            style("bullet", "List Bullet", &list("", "3")),
            style("own", "Own", r#"<w:basedOn w:val="bullet"/>"#),
            style("second", "List Bullet 2", &list("", "4")),
            style("third", "Deep", &list(r#"<w:ilvl w:val="200"/>"#, "3")),
            style("h1", "heading 1", &list("", "3")),
            style("sub", "Sub", r#"<w:basedOn w:val="h1"/>"#),
            style(
                "none",
                "None",
                &format!(r#"<w:basedOn w:val="bullet"/>{}"#, list("", "0")),
            ),
            style("circle", "Circle", r#"<w:basedOn w:val="circle"/>"#),
        ];
        let numbering = r#"<w:abstractNum><w:lvl w:ilvl="0"/><w:lvl w:ilvl="1"><w:pStyle w:val="second"/></w:lvl></w:abstractNum>"#;
        let lists = ListStyles::read(&styles.concat(), numbering);
        assert_eq!(lists.of("bullet"), Some(("3", 0)));
        assert_eq!(lists.of("own"), Some(("3", 0)));
        assert_eq!(lists.of("second"), Some(("4", 1)));
        assert_eq!(lists.of("third"), Some(("3", 8)));
        for none in ["h1", "sub", "none", "circle", "other"] {
            assert_eq!(lists.of(none), None, "{none}");
        }
    }
}
