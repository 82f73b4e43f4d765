//! Headers and footers of sheets, which `undoc` does not read. They are codes of one line for three places, with marks for what is filled
//! in and for fonts. Source: ECMA-376 part 1, sections 18.3.1.46 (`headerFooter`) and 18.3.1.58 (`oddHeader`).

use std::collections::HashSet;

use memchr::memmem;
use quick_xml::events::Event;
use undoc::{Paragraph, Section};

use super::{
    events,
    page_numbers::{PAGE_NUMBER, without_page_numbers},
    push_reference,
};

const ALL: &str = "headerFooter";
/// The views that users keep of a sheet, which have margins of their own before those of the sheet.
const VIEWS: &str = "customSheetViews";
const ABOVE: [&str; 3] = ["firstHeader", "oddHeader", "evenHeader"];
const BELOW: [&str; 3] = ["firstFooter", "oddFooter", "evenFooter"];

/// Text of this font size is not meant to be seen: programs mark their own text by it.
const UNSEEN_SIZE: u32 = 1;

/// The lines above and below the pages of a sheet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Margins {
    above: Vec<String>,
    below: Vec<String>,
}

impl Margins {
    /// Those of a sheet of Excel 5.0 to 2003, by their codes.
    pub(super) fn of(above: &[String], below: &[String]) -> Self {
        let lines = |codes: &[String]| codes.iter().flat_map(|code| lines(code)).collect();
        Self {
            above: lines(above),
            below: lines(below),
        }
    }

    /// Reads those of a sheet of Office Open XML.
    pub(super) fn read(sheet: &str) -> Self {
        let mut margins = Self::default();
        let Some(at) = memmem::find(sheet.as_bytes(), ALL.as_bytes()) else {
            return margins;
        };
        let begin = sheet[..at].rfind('<').unwrap_or_default();
        let mut code: Option<String> = None;
        let mut is_inside = false;
        for event in events(&sheet[begin..]) {
            match event {
                Event::Start(start) => {
                    let name = start.local_name();
                    is_inside |= name.as_ref() == ALL;
                    let is_one = is_inside && [ABOVE, BELOW].concat().contains(&name.as_ref());
                    code = is_one.then(String::new);
                }
                Event::Text(text) => {
                    if let Some(code) = &mut code {
                        code.push_str(&text);
                    }
                }
                Event::GeneralRef(reference) => {
                    if let Some(code) = &mut code {
                        push_reference(code, &reference);
                    }
                }
                Event::End(end) => match end.local_name().as_ref() {
                    ALL => is_inside = false,
                    VIEWS => margins = Self::default(),
                    name => {
                        let Some(code) = code.take() else {
                            continue;
                        };
                        match ABOVE.contains(&name) {
                            true => margins.above.extend(lines(&code)),
                            false => margins.below.extend(lines(&code)),
                        }
                    }
                },
                _ => {}
            }
        }
        margins
    }

    /// Puts the lines around a sheet that others do not have.
    pub(super) fn add(self, section: &mut Section, seen: &mut HashSet<String>) {
        let mut paragraphs = |lines: Vec<String>| {
            let new = lines.into_iter().filter(|line| seen.insert(line.clone()));
            let new: Vec<Paragraph> = new.map(Paragraph::with_text).collect();
            (!new.is_empty()).then_some(new)
        };
        section.header = paragraphs(self.above);
        section.footer = paragraphs(self.below);
    }
}

/// One of the three places of a margin.
#[derive(Debug, Default)]
struct Place {
    text: String,
    is_unseen: bool,
}

/// The lines of the code of a margin, on its left, in its middle and on its right. What is filled in, such as a date, is left out.
fn lines(code: &str) -> Vec<String> {
    let mut places = vec![];
    let mut place = Place::default();
    let mut rest = code.chars();
    while let Some(character) = rest.next() {
        let mark = match character {
            '&' => rest.next(),
            other => {
                if !place.is_unseen {
                    place.text.push(other);
                }
                continue;
            }
        };
        match mark {
            Some('L' | 'C' | 'R') => places.push(std::mem::take(&mut place)),
            Some('&') if !place.is_unseen => place.text.push('&'),
            Some('P' | 'N') => {
                if !place.is_unseen {
                    place.text.push(PAGE_NUMBER);
                }
                // What is added to the number.
                let more = rest.as_str().strip_prefix(['+', '-']);
                let digits = more.map(|more| more.trim_start_matches(|c: char| c.is_ascii_digit()));
                rest = digits.unwrap_or(rest.as_str()).chars();
            }
            // The name of a font, and a color.
            Some('"') => {
                rest.find(|one| *one == '"');
            }
            Some('K') => {
                rest.nth(5);
            }
            Some(first) if first.is_ascii_digit() => {
                let digits = rest.as_str();
                let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
                let size = format!("{first}{}", &digits[..digits.len() - after.len()]);
                place.is_unseen = size.parse().is_ok_and(|size: u32| size <= UNSEEN_SIZE);
                rest = after.chars();
            }
            // What is filled in, and how text looks.
            _ => {}
        }
    }
    places.push(place);
    let lines = places.iter().flat_map(|place| place.text.lines());
    lines
        .map(without_page_numbers)
        .filter(|line| !line.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_leave_their_text() {
        let cases: [(&str, &[&str]); 20] = [
            ("Plain", &["Plain"]),
            (
                "&LLeft &Bbold&B&CMiddle&RR && D",
                &["Left bold", "Middle", "R & D"],
            ),
            (
                "&L&1#&\"Calibri\"&10&K000000Sensitivity: Internal",
                &["Sensitivity: Internal"],
            ),
            ("&C&\"Times New Roman,Regular\"&12&A", &[]),
            ("&CPage &P of &N", &[]),
            ("&CSeite &P+12&R&D &T", &[]),
            (
                "&CCopy for the board, page &P-1.",
                &["Copy for the board, page ."],
            ),
            ("&CAcme GmbH\nPage &P of &N", &["Acme GmbH"]),
            ("&CRev. 3, page &P", &["Rev. 3, page"]),
            ("&CRoom A plan &P", &["Room A plan"]),
            ("&C\u{7b2c} &P \u{9875}\u{ff0c}\u{5171} &N \u{9875}", &[]),
            ("&CAcme GmbH \u{2013} &P", &["Acme GmbH \u{2013}"]),
            ("&CPrice list &P", &["Price list"]),
            (
                "&C\u{6771}\u{4eac}\u{652f}\u{5e97} &P",
                &["\u{6771}\u{4eac}\u{652f}\u{5e97}"],
            ),
            ("&LIBM &P", &["IBM"]),
            ("&LR2 &1&P", &["R2"]),
            ("&K01+034One\nTwo  words&G", &["One", "Two words"]),
            ("&\"open", &[]),
            ("&", &[]),
            ("&99999999999x&Kab", &["x"]),
        ];
        for (code, expected) in cases {
            assert_eq!(lines(code), expected, "{code}");
        }
    }

    #[test]
    fn sheets_have_lines_above_and_below() {
        let sheet = r#"<x:worksheet><x:sheetData/><x:headerFooter differentFirst="1"><x:oddHeader>&amp;LA &amp;&amp; B &lt;draft&gt;</x:oddHeader><x:oddFooter/><x:firstFooter>&amp;Rlast</x:firstFooter></x:headerFooter><x:oddHeader>no</x:oddHeader></x:worksheet>"#;
        let margins = Margins::read(sheet);
        let line = |text: &str| vec![text.to_owned()];
        assert_eq!(margins.above, line("A & B <draft>"));
        assert_eq!(margins.below, line("last"));
        assert_eq!(Margins::read("<worksheet/>"), Margins::default());
        assert_eq!(Margins::read("<a>headerFooter</a>"), Margins::default());
        let view = "<customSheetViews><customSheetView><headerFooter><oddHeader>view</oddHeader></headerFooter></customSheetView></customSheetViews>";
        let with_view = sheet.replace("<x:headerFooter", &format!("{view}<x:headerFooter"));
        assert_eq!(Margins::read(&with_view), margins);
        assert_eq!(Margins::read(view), Margins::default());
        let mut seen = HashSet::new();
        let mut section = Section::new(0);
        margins.add(&mut section, &mut seen);
        let above = section.header.unwrap_or_default();
        assert_eq!(above[0].plain_text(), "A & B <draft>");
        let mut next = Section::new(1);
        Margins::read(sheet).add(&mut next, &mut seen);
        assert!(next.header.is_none() && next.footer.is_none());
    }
}
