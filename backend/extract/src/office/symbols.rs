//! Characters that Word stores by their places in a symbol font (`w:sym`). Those of the font Symbol are Adobe's; of Wingdings and its like, boxes,
//! check marks, bullets, arrows and numbers are known, and other ornaments are left out. Sources: ECMA-376 part 1, section 17.3.3.30;
//! Unicode's vendor mapping of Adobe's Symbol encoding; ISO/IEC JTC 1/SC 2/WG 2 N4384 (Wingdings).

use std::ops::RangeInclusive;

/// Where the characters of a symbol font stand.
const PRIVATE: RangeInclusive<u32> = 0xF000..=0xF0FF;
/// Symbol, in the places from 0x20 and from 0xA0 on. Blanks stand where there is no character.
const SYMBOL: &str = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_ αβχδεφγηιϕκλµνοπθρστυϖωξψζ{|}∼";
const SYMBOL_HIGH: &str =
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…  ↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇   ∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈   ∑           〉∫⌠ ⌡";
/// Wingdings.
const WINGDINGS: [(u32, char); 35] = [
    (0x22, '✂'),
    (0x28, '☎'),
    (0x2A, '✉'),
    (0x46, '☞'),
    (0x4A, '☺'),
    (0x4C, '☹'),
    (0x6C, '●'),
    (0x6E, '■'),
    (0x6F, '□'),
    (0x71, '❑'),
    (0x72, '❒'),
    (0x75, '◆'),
    (0x76, '❖'),
    (0x77, '◆'),
    (0x9E, '·'),
    (0x9F, '•'),
    (0xA7, '▪'),
    (0xA8, '☐'),
    (0xAB, '★'),
    (0xD8, '➢'),
    (0xDF, '←'),
    (0xE0, '→'),
    (0xE1, '↑'),
    (0xE2, '↓'),
    (0xE7, '←'),
    (0xE8, '→'),
    (0xE9, '↑'),
    (0xEA, '↓'),
    (0xEF, '⇐'),
    (0xF0, '⇒'),
    (0xF3, '⇔'),
    (0xFB, '✗'),
    (0xFC, '✓'),
    (0xFD, '☒'),
    (0xFE, '☑'),
];
/// Circled numbers of Wingdings from 0 to 10, white and black.
const CIRCLED: &str = "⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿";
/// Where these stand.
const CIRCLED_AT: RangeInclusive<u32> = 0x80..=0x95;
/// Wingdings 2.
const WINGDINGS_2: [(u32, char); 6] = [
    (0x4F, '✗'),
    (0x50, '✓'),
    (0x51, '☒'),
    (0x52, '☑'),
    (0x53, '☒'),
    (0xA3, '☐'),
];
/// Webdings.
const WEBDINGS: [(u32, char); 3] = [(0x61, '✓'), (0x63, '☐'), (0x72, '✗')];

/// Returns the character that stands at a place of a font, which is written in hexadecimal digits, or `None` for one that is not known.
pub(super) fn character(font: &str, place: &str) -> Option<char> {
    let code = u32::from_str_radix(place.trim(), 16).ok()?;
    if !PRIVATE.contains(&code) {
        return char::from_u32(code).filter(|one| !one.is_control());
    }
    let place = code - PRIVATE.start();
    let at = |text: &str, from: u32| {
        let place = usize::try_from(place.checked_sub(from)?).ok()?;
        text.chars().nth(place).filter(|one| *one != ' ')
    };
    let known = |all: &[(u32, char)]| {
        let found = all.iter().find(|(code, _)| *code == place);
        found.map(|(_, character)| *character)
    };
    match font.trim().to_ascii_lowercase().as_str() {
        "symbol" => at(SYMBOL_HIGH, 0xA0).or_else(|| at(SYMBOL, 0x20)),
        "wingdings" if CIRCLED_AT.contains(&place) => at(CIRCLED, *CIRCLED_AT.start()),
        "wingdings" => known(&WINGDINGS),
        "wingdings 2" => known(&WINGDINGS_2),
        "webdings" => known(&WEBDINGS),
        "wingdings 3" => None,
        // Other fonts have the usual characters at these places.
        _ => char::from_u32(place).filter(|one| !one.is_control()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_symbol_fonts_are_characters() {
        for (font, place, expected) in [
            ("Symbol", "F061", Some('α')),
            ("symbol", "f0b3", Some('≥')),
            ("Symbol", "F020", None),
            ("Symbol", "F0A0", Some('€')),
            ("Symbol", "F07E", Some('∼')),
            ("Symbol", "F0E5", Some('∑')),
            ("Symbol", "F0F2", Some('∫')),
            ("Wingdings", "F0FE", Some('☑')),
            ("Wingdings", "F081", Some('①')),
            ("Wingdings", "F095", Some('❿')),
            ("Wingdings", "F0E0", Some('→')),
            ("Wingdings", "F025", None),
            ("Wingdings 2", "F052", Some('☑')),
            ("Wingdings 3", "F052", None),
            ("Webdings", "F061", Some('✓')),
            ("Arial", "F0E9", Some('é')),
            ("Arial", "F000", None),
            ("Segoe UI Emoji", "1F60A", Some('😊')),
            ("MS Gothic", "2612", Some('☒')),
            ("", "D800", None),
            ("", "x", None),
        ] {
            assert_eq!(character(font, place), expected, "{font} {place}");
        }
    }
}
