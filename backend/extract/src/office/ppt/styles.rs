//! What makes a paragraph an item of a list: its own properties, and those of the master. Sources: [MS-PPT], sections 2.9.13 to 2.9.45
//! and 2.9.60 to 2.9.68.

use std::collections::HashMap;

use super::records::Fields;

/// Levels that text is indented by, at most.
const LEVELS: u16 = 5;
/// What numbers count in where nothing says it: `1.`, from 1 on.
const PLAIN_NUMBERS: (u16, u16) = (3, 1);

/// Bits that say which properties a paragraph has.
const BULLET_FLAGS: u32 = 0xF;
const HAS_BULLET: u32 = 0x1;
const TAB_STOPS: u32 = 0x10_0000;
const BULLET_PICTURE: u32 = 0x80_0000;
const NUMBER_SCHEME: u32 = 0x100_0000;
const HAS_NUMBER: u32 = 0x200_0000;
/// The properties between the flags of the bullet and the tab stops, and those behind them, in their order: bits, and bytes.
const BEFORE_TABS: [(u32, usize); 11] = [
    (0x80, 2),
    (0x10, 2),
    (0x40, 2),
    (0x20, 4),
    (0x800, 2),
    (0x1000, 2),
    (0x2000, 2),
    (0x4000, 2),
    (0x100, 2),
    (0x400, 2),
    (0x8000, 2),
];
const AFTER_TABS: [(u32, usize); 3] = [(0x1_0000, 2), (0xE_0000, 2), (0x20_0000, 2)];
/// Bits of which each says that characters have a style. The highest two belong to nothing in the specification; LibreOffice counts
/// into them.
const CHARACTER_STYLE: u32 = 0xFEB7;
/// The properties of characters behind their style.
const AFTER_STYLE: [(u32, usize); 7] = [
    (0x1_0000, 2),
    (0x20_0000, 2),
    (0x40_0000, 2),
    (0x80_0000, 2),
    (0x2_0000, 2),
    (0x4_0000, 4),
    (0x8_0000, 2),
];

/// Text types, of which some look like others where they say nothing themselves.
const TITLE: u32 = 0;
const BODY: u32 = 1;
const CENTERED_BODY: u32 = 5;
const CENTERED_TITLE: u32 = 6;
const HALF_BODY: u32 = 7;
const QUARTER_BODY: u32 = 8;

/// Whether a paragraph is numbered, and how: a scheme such as `1.` or `a)`, and the first number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) is_on: Option<bool>,
    pub(super) scheme: Option<(u16, u16)>,
}

impl Numbers {
    fn or(self, other: Self) -> Self {
        Self {
            is_on: self.is_on.or(other.is_on),
            scheme: self.scheme.or(other.scheme),
        }
    }
}

/// The properties of the text from a unit of UTF-16 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParagraphRun {
    pub(super) begin: usize,
    pub(super) level: u16,
    pub(super) has_bullet: Option<bool>,
}

/// The properties of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) paragraphs: Vec<ParagraphRun>,
    /// From which unit on which item of further properties counts.
    pub(super) items: Vec<(usize, usize)>,
}

impl Runs {
    /// The runs of a text of this many units, as far as they can be read.
    pub(super) fn read(data: &[u8], units: usize) -> Self {
        let mut runs = Self::default();
        let mut fields = Fields::of(data);
        // The end of the text counts as a unit.
        let read = runs.read_paragraphs(&mut fields, units + 1);
        if read.is_some() {
            runs.read_items(&mut fields, units + 1);
        }
        runs
    }

    fn read_paragraphs(&mut self, fields: &mut Fields<'_>, units: usize) -> Option<()> {
        let mut begin = 0;
        while begin < units {
            let count = usize::try_from(fields.u32()?).ok()?;
            let level = fields.u16()?.min(LEVELS - 1);
            let has_bullet = bullet(fields)?;
            if count > 0 {
                self.paragraphs.push(ParagraphRun {
                    begin,
                    level,
                    has_bullet,
                });
            }
            begin = begin.saturating_add(count);
        }
        Some(())
    }

    /// Characters that follow each other and name the same item share one. Its number is written modulo 16.
    fn read_items(&mut self, fields: &mut Fields<'_>, units: usize) -> Option<()> {
        let (mut begin, mut named, mut next) = (0, None, 0);
        while begin < units {
            let count = usize::try_from(fields.u32()?).ok()?;
            let name = item_name(fields)?;
            if count > 0 && named != Some(name) {
                let item = next + (name + 16 - next % 16) % 16;
                self.items.push((begin, item));
                (named, next) = (Some(name), item + 1);
            }
            begin = begin.saturating_add(count);
        }
        Some(())
    }
}

fn skip_properties(fields: &mut Fields<'_>, mask: u32, properties: &[(u32, usize)]) -> Option<()> {
    let present = properties.iter().filter(|(bits, _)| mask & bits != 0);
    fields.skip(present.map(|(_, bytes)| bytes).sum())
}

/// Reads the properties of a paragraph, and says whether it has a bullet.
fn bullet(fields: &mut Fields<'_>) -> Option<Option<bool>> {
    let mask = fields.u32()?;
    let mut has_bullet = None;
    if mask & BULLET_FLAGS != 0 {
        let flags = fields.u16()?;
        has_bullet = (mask & HAS_BULLET != 0).then_some(flags & 1 != 0);
    }
    skip_properties(fields, mask, &BEFORE_TABS)?;
    if mask & TAB_STOPS != 0 {
        let count = fields.u16()?;
        fields.skip(usize::from(count) * 4)?;
    }
    skip_properties(fields, mask, &AFTER_TABS)?;
    Some(has_bullet)
}

/// Reads the properties of characters, and gives the number of their item of further properties, modulo 16.
fn item_name(fields: &mut Fields<'_>) -> Option<usize> {
    let mask = fields.u32()?;
    let mut name = 0;
    if mask & CHARACTER_STYLE != 0 {
        name = usize::from((fields.u16()? >> 10) & 0xF);
    }
    skip_properties(fields, mask, &AFTER_STYLE)?;
    Some(name)
}

/// Reads further properties of paragraphs and of their characters, which PowerPoint 2000 added.
fn numbers(fields: &mut Fields<'_>) -> Option<Numbers> {
    let mask = fields.u32()?;
    let mut numbers = Numbers::default();
    if mask & BULLET_PICTURE != 0 {
        fields.skip(2)?;
    }
    if mask & HAS_NUMBER != 0 {
        numbers.is_on = Some(fields.u16()? != 0);
    }
    if mask & NUMBER_SCHEME != 0 {
        numbers.scheme = Some((fields.u16()?, fields.u16()?));
    }
    let characters = fields.u32()?;
    if characters & 0x10_0000 != 0 {
        fields.skip(4)?;
    }
    Some(numbers)
}

/// The items of further properties of a text, as far as they can be read.
pub(super) fn items(data: &[u8]) -> Vec<Numbers> {
    let mut fields = Fields::of(data);
    std::iter::from_fn(move || {
        let numbers = numbers(&mut fields)?;
        let mask = fields.u32()?;
        skip_properties(
            &mut fields,
            mask,
            &[(0x1, 2), (0x2, 2), (0x4, 2), (0x40, 2), (0x20, 4)],
        )?;
        if mask & 0x200 != 0 {
            let tags = usize::try_from(fields.u32()?).ok()?;
            fields.skip(tags.checked_mul(4)?)?;
        }
        Some(numbers)
    })
    .collect()
}

/// What text looks like where it says nothing itself, by its type and level.
#[derive(Debug, Clone, Default)]
pub(super) struct Styles {
    bullets: HashMap<(u32, u16), bool>,
    numbers: HashMap<(u32, u16), Numbers>,
}

impl Styles {
    /// Adds what a master's record says of a type of text.
    pub(super) fn add_bullets(&mut self, kind: u16, data: &[u8]) {
        let mut fields = Fields::of(data);
        let count = fields.u16().unwrap_or_default().min(LEVELS);
        for place in 0..count {
            let mut read = || {
                let level = match u32::from(kind) < CENTERED_BODY {
                    true => place,
                    false => fields.u16()?,
                };
                let has_bullet = bullet(&mut fields)?;
                item_name(&mut fields)?;
                Some((level, has_bullet))
            };
            match read() {
                Some((level, Some(has_bullet))) if is_place(kind, level) => {
                    self.bullets.insert((kind.into(), level), has_bullet);
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Likewise of what PowerPoint 2000 added.
    pub(super) fn add_numbers(&mut self, kind: u16, data: &[u8]) {
        let mut fields = Fields::of(data);
        let count = fields.u16().unwrap_or_default().min(LEVELS);
        for level in 0..count {
            let Some(numbers) = numbers(&mut fields) else {
                return;
            };
            if is_place(kind, level) {
                self.numbers.insert((kind.into(), level), numbers);
            }
        }
    }

    /// Adds what others say of whatever these do not.
    pub(super) fn inherit(&mut self, others: &Self) {
        for (place, has_bullet) in &others.bullets {
            self.bullets.entry(*place).or_insert(*has_bullet);
        }
        for (place, numbers) in &others.numbers {
            let own = self.numbers.entry(*place).or_default();
            *own = own.or(*numbers);
        }
    }

    pub(super) fn has_bullet(&self, kind: u32, level: u16) -> bool {
        let found = kinds(kind).find_map(|kind| self.bullets.get(&(kind, level)));
        found.copied().unwrap_or_default()
    }

    /// The scheme and the first number of a paragraph that is numbered.
    pub(super) fn numbered(&self, own: Numbers, kind: u32, level: u16) -> Option<(u16, u16)> {
        let inherited = kinds(kind).filter_map(|kind| self.numbers.get(&(kind, level)));
        let numbers = inherited.fold(own, |numbers, more| numbers.or(*more));
        let scheme = numbers.scheme.unwrap_or(PLAIN_NUMBERS);
        numbers.is_on.unwrap_or_default().then_some(scheme)
    }
}

/// Whether there is this type of text, and this level.
fn is_place(kind: u16, level: u16) -> bool {
    u32::from(kind) <= QUARTER_BODY && level < LEVELS
}

/// A type of text, and the one that it looks like.
fn kinds(kind: u32) -> impl Iterator<Item = u32> {
    let base = match kind {
        CENTERED_TITLE => Some(TITLE),
        CENTERED_BODY | HALF_BODY | QUARTER_BODY => Some(BODY),
        _ => None,
    };
    std::iter::once(kind).chain(base)
}
