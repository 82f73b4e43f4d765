//! Text of a presentation, and the paragraphs that it becomes. Sources: [MS-PPT], sections 2.9.41 to 2.9.51 and 2.10.16.

use std::collections::HashMap;

use undoc::{ListInfo, ListType, Paragraph, TextRun, model::HeadingLevel};

use super::{
    records::{Budget, Record, u32_at, units},
    styles::{Numbers, Runs, Styles},
};
use crate::error::ExtractError;

const TEXT_HEADER: u16 = 0x0F9F;
const TEXT_CHARS: u16 = 0x0FA0;
const TEXT_BYTES: u16 = 0x0FA8;
const STYLE_TEXT_PROP: u16 = 0x0FA1;
const INTERACTIVE_INFO: u16 = 0x0FF2;
const INTERACTIVE_INFO_ATOM: u16 = 0x0FF3;
const TEXT_INTERACTIVE_INFO: u16 = 0x0FDF;
/// Records that say where a number, a date, a header or a footer is shown: one character stands for it.
const FIELDS: [u16; 6] = [0x0FD8, 0x0FF7, 0x0FF8, 0x0FF9, 0x0FFA, 0x1015];

/// Types of text.
const TITLE: u32 = 0;
pub(super) const NOTES: u32 = 2;
const OTHER: u32 = 4;
const CENTERED_BODY: u32 = 5;
const CENTERED_TITLE: u32 = 6;

const PARAGRAPH_END: u16 = 0x0D;
const LINE_BREAK: u16 = 0x0B;

/// A link of the text between two units.
#[derive(Debug, Clone, Copy)]
struct Link {
    begin: usize,
    end: usize,
    target: u32,
}

/// A text, as it is stored.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// Its type: a title, the body of a slide, notes and others.
    pub(super) kind: u32,
    units: Vec<u16>,
    runs: Runs,
    /// In order, and none over another.
    links: Vec<Link>,
}

impl Text {
    pub(super) fn is_title(&self) -> bool {
        matches!(self.kind, TITLE | CENTERED_TITLE)
    }
}

/// The texts among records: each begins with its type, and its properties follow it.
pub(super) fn texts(
    records: &[Record<'_>],
    budget: &mut Budget,
) -> Result<Vec<Text>, ExtractError> {
    let mut texts: Vec<Text> = vec![];
    let mut target = None;
    for record in records {
        let data = record.data;
        if record.kind == TEXT_HEADER {
            texts.push(Text {
                kind: u32_at(data, 0).unwrap_or(OTHER),
                ..Text::default()
            });
            target = None;
            continue;
        }
        let Some(text) = texts.last_mut() else {
            continue;
        };
        match record.kind {
            TEXT_CHARS => {
                budget.content(data)?;
                text.units = units(data);
            }
            TEXT_BYTES => {
                budget.content(data)?;
                text.units = data.iter().copied().map(u16::from).collect();
            }
            STYLE_TEXT_PROP => {
                budget.content(data)?;
                text.runs = Runs::read(data, text.units.len());
            }
            INTERACTIVE_INFO => {
                let atom = budget.child(data, INTERACTIVE_INFO_ATOM)?;
                target = atom.and_then(|atom| u32_at(atom.data, 4));
            }
            TEXT_INTERACTIVE_INFO => {
                if let (Some(target), Some(begin), Some(end)) =
                    (target.take(), place(data, 0), place(data, 4))
                {
                    text.links.push(Link { begin, end, target });
                }
            }
            kind if FIELDS.contains(&kind) => {
                if let Some(unit) = place(data, 0).and_then(|at| text.units.get_mut(at)) {
                    *unit = 0;
                }
            }
            _ => {}
        }
    }
    texts.iter_mut().for_each(part_links);
    Ok(texts)
}

fn place(data: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u32_at(data, offset)?).ok()
}

/// Sorts the links of a text, and cuts those that begin within another.
fn part_links(text: &mut Text) {
    text.links.sort_by_key(|link| link.begin);
    let mut end = 0;
    text.links.retain_mut(|link| {
        link.begin = link.begin.max(end);
        end = end.max(link.end);
        link.begin < link.end
    });
}

/// What texts become paragraphs with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looks<'a> {
    pub(super) styles: &'a Styles,
    /// Where links lead to, by their numbers.
    pub(super) targets: &'a HashMap<u32, String>,
}

impl Looks<'_> {
    /// The paragraphs of a text that are not empty; `items` are its further properties.
    pub(super) fn paragraphs(
        self,
        text: &Text,
        items: &[Numbers],
        budget: &mut Budget,
    ) -> Result<Vec<Paragraph>, ExtractError> {
        let mut paragraphs = vec![];
        let mut lists = Lists::default();
        let mut runs = Ahead::of(&text.runs.paragraphs, |run| run.begin);
        let mut places = Ahead::of(&text.runs.items, |(begin, _)| *begin);
        let mut links = Ahead::of(&text.links, |link| link.begin);
        let heading = match text.kind {
            TITLE | CENTERED_TITLE => HeadingLevel::H1,
            CENTERED_BODY => HeadingLevel::H2,
            _ => HeadingLevel::None,
        };
        let mut begin = 0;
        budget.units(text.units.len())?;
        for line in text.units.split(|unit| *unit == PARAGRAPH_END) {
            budget.elements(1)?;
            let run = runs.at(begin);
            let level = run.map_or(0, |run| run.level);
            let has_bullet = run.and_then(|run| run.has_bullet);
            let has_bullet = has_bullet.unwrap_or_else(|| self.styles.has_bullet(text.kind, level));
            let item = places.at(begin).map_or(0, |(_, item)| *item);
            let item = items.get(item).copied().unwrap_or_default();
            let numbers = self.styles.numbered(item, text.kind, level);
            let runs = self.runs_of(line, begin, &mut links, budget)?;
            begin += line.len() + 1;
            let is_blank = runs.iter().all(|run| run.text.trim().is_empty());
            let list_info = match has_bullet && !text.is_title() {
                false => {
                    lists.leave(level);
                    None
                }
                // Nothing is shown before an empty paragraph, and it does not count.
                true if is_blank => None,
                true => Some(lists.item(level, numbers)),
            };
            if is_blank {
                continue;
            }
            budget.paragraph()?;
            paragraphs.push(Paragraph {
                runs,
                heading: match list_info {
                    Some(_) => HeadingLevel::None,
                    None => heading,
                },
                list_info,
                ..Paragraph::default()
            });
        }
        Ok(paragraphs)
    }

    fn runs_of(
        self,
        line: &[u16],
        begin: usize,
        links: &mut Ahead<'_, Link>,
        budget: &mut Budget,
    ) -> Result<Vec<TextRun>, ExtractError> {
        let mut runs: Vec<TextRun> = vec![];
        let mut part = vec![];
        let mut target = None;
        let mut end_part = |part: &mut Vec<u16>, target: Option<u32>, breaks: bool| {
            if !part.is_empty() {
                let hyperlink = target.and_then(|target| self.targets.get(&target));
                let text = String::from_utf16_lossy(part);
                part.clear();
                budget.paragraph()?;
                budget.text(text.len() + hyperlink.map_or(0, String::len))?;
                runs.push(TextRun {
                    hyperlink: hyperlink.cloned(),
                    ..TextRun::plain(text)
                });
            }
            if breaks && let Some(run) = runs.last_mut() {
                run.line_break = true;
            }
            Ok::<_, ExtractError>(())
        };
        for (place, unit) in (begin..).zip(line) {
            match *unit {
                0 => {}
                LINE_BREAK => end_part(&mut part, target, true)?,
                unit => {
                    let link = links.at(place).filter(|link| place < link.end);
                    let led_to = link.map(|link| link.target);
                    if led_to != target {
                        end_part(&mut part, target, false)?;
                        target = led_to;
                    }
                    part.push(unit);
                }
            }
        }
        end_part(&mut part, target, false)?;
        Ok(runs)
    }
}

/// Finds the last of some sorted values that begins at a place or before it, for one place after another.
struct Ahead<'a, T> {
    values: &'a [T],
    begin: fn(&T) -> usize,
}

impl<'a, T> Ahead<'a, T> {
    fn of(values: &'a [T], begin: fn(&T) -> usize) -> Self {
        Self { values, begin }
    }

    fn at(&mut self, place: usize) -> Option<&'a T> {
        while let [_, next, ..] = self.values
            && (self.begin)(next) <= place
        {
            self.values = &self.values[1..];
        }
        self.values.first().filter(|one| (self.begin)(one) <= place)
    }
}

/// The lists that are open at a paragraph, from the outermost one on.
#[derive(Debug, Default)]
struct Lists {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    level: u16,
    /// What it is numbered with, and the last number.
    last: Option<((u16, u16), u32)>,
    /// Whether no paragraph without a bullet stands behind its last item.
    goes_on: bool,
}

impl Lists {
    /// A paragraph that is no item ends the lists of its level and of deeper ones.
    fn leave(&mut self, level: u16) {
        self.open.retain(|open| open.level < level);
        for open in &mut self.open {
            open.goes_on = false;
        }
    }

    /// The next item of this level.
    fn item(&mut self, level: u16, numbers: Option<(u16, u16)>) -> ListInfo {
        self.open.retain(|open| open.level <= level);
        let before = self.open.pop_if(|open| open.level == level);
        let before = before.and_then(|open| open.last);
        let last = numbers.map(|numbers| match before {
            Some((same, number)) if same == numbers => (numbers, number.saturating_add(1)),
            _ => (numbers, u32::from(numbers.1)),
        });
        let depth = self.open.iter().filter(|open| open.goes_on).count();
        self.open.push(Open {
            level,
            last,
            goes_on: true,
        });
        ListInfo {
            list_type: match last {
                Some(_) => ListType::Numbered,
                None => ListType::Bullet,
            },
            level: u8::try_from(depth).unwrap_or_default(),
            number: last.map(|(_, number)| number),
            marker_image: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(items: &[(u16, Option<(u16, u16)>)], lists: &mut Lists) -> Vec<(u8, Option<u32>)> {
        let items = items.iter();
        items
            .map(|(level, numbers)| lists.item(*level, *numbers))
            .map(|info| (info.level, info.number))
            .collect()
    }

    #[test]
    fn numbers_go_on_behind_deeper_items_and_begin_again_behind_others() {
        let four = Some((3, 4));
        let mut lists = Lists::default();
        assert_eq!(
            marks(
                &[(0, four), (1, None), (1, Some((1, 1))), (0, four)],
                &mut lists
            ),
            [(0, Some(4)), (1, None), (1, Some(1)), (0, Some(5))]
        );
        lists.leave(1);
        assert_eq!(
            marks(&[(2, None), (0, four), (0, None), (0, four)], &mut lists),
            [(0, None), (0, Some(6)), (0, None), (0, Some(4))]
        );
        lists.leave(0);
        assert_eq!(marks(&[(0, four)], &mut lists), [(0, Some(4))]);
    }

    #[test]
    fn links_lie_beside_each_other() {
        let link = |begin, end| Link {
            begin,
            end,
            target: 1,
        };
        let mut text = Text {
            links: vec![link(4, 6), link(0, 5), link(1, 3), link(8, 7)],
            ..Text::default()
        };
        part_links(&mut text);
        let places: Vec<_> = text.links.iter().map(|it| (it.begin, it.end)).collect();
        assert_eq!(places, [(0, 5), (5, 6)]);
    }
}
