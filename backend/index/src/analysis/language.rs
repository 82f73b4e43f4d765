//! The languages whose words are stemmed, and which of them a text is in.

use frostem::{Algorithm, Stemmer};

/// The place of a language is its number on disk: new ones come last. What is known of each: its tag, and its stemmer. Pairs of characters need none.
const LANGUAGES: [(&str, Option<Algorithm>); 16] = [
    ("und", None),
    ("en", Some(Algorithm::English)),
    ("es", Some(Algorithm::Spanish)),
    ("fr", Some(Algorithm::French)),
    ("de", Some(Algorithm::German)),
    ("it", Some(Algorithm::Italian)),
    ("pt", Some(Algorithm::Portuguese)),
    ("pl", Some(Algorithm::Polish)),
    ("ru", Some(Algorithm::Russian)),
    ("nl", Some(Algorithm::Dutch)),
    ("ar", Some(Algorithm::Arabic)),
    ("zh-cn", None),
    ("ja", None),
    ("ko", None),
    ("hi", Some(Algorithm::Hindi)),
    ("he", None),
];

/// How much of a text the detector reads, in bytes.
const READ: usize = 4_096;

/// A language as far as searching knows it. Those without a stemmer are compared as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language(u8);

impl Language {
    /// A language of which nothing is known.
    pub const UNKNOWN: Self = Self(0);

    /// All languages but the unknown one.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..LANGUAGES.len()).filter_map(|index| u8::try_from(index).ok().map(Self))
    }

    /// The language of a tag, `de` or `de-AT`; the unknown one for those that are not known.
    #[must_use]
    pub fn from_tag(tag: &str) -> Self {
        let primary = |tag: &str| colloquy_base::language::primary(tag).to_lowercase();
        let wanted = primary(tag);
        let found = Self::all().find(|language| primary(language.tag()) == wanted);
        found.unwrap_or(Self::UNKNOWN)
    }

    /// The language that a text seems to be in, by its first few thousand characters.
    #[must_use]
    pub fn detect(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(READ)];
        colloquy_language::detect(text).map_or(Self::UNKNOWN, Self::from_tag)
    }

    /// Its tag; `und` for the unknown one.
    #[must_use]
    pub fn tag(self) -> &'static str {
        LANGUAGES
            .get(usize::from(self.0))
            .map_or("und", |(tag, _)| tag)
    }

    /// Its number, which never becomes another's.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// The language with this number; the unknown one for those that are not known.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        let is_known = usize::from(number) < LANGUAGES.len();
        if is_known {
            Self(number)
        } else {
            Self::UNKNOWN
        }
    }

    pub(super) fn stemmer(self) -> Option<Stemmer> {
        let (_, algorithm) = LANGUAGES.get(usize::from(self.0))?;
        algorithm.map(Stemmer::new)
    }

    pub(super) fn is_hebrew(self) -> bool {
        self.tag() == "he"
    }
}
