//! What reading a document tells of it beside its text.

use colloquy_base::language::primary;
use colloquy_digitize::Digitized;
use colloquy_index::analysis::Language;
use colloquy_providers::NotUnderstood;

/// The most pages without text that are remembered.
const MOST_MISSING: usize = 1_000;
/// The most that a warning names.
const MOST_NAMED: usize = 20;
/// The longest name of an author, in characters.
const LONGEST_AUTHOR: usize = 200;
/// The longest tag of a language, in characters.
const LONGEST_TAG: usize = 35;

/// What a document says of itself, and what of it could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct DocumentFacts {
    /// Who wrote it.
    pub(crate) author: Option<String>,
    /// The language that it names, a tag.
    pub(crate) language: Option<String>,
    /// Pages, slides or pictures.
    pub(crate) pages: Option<i64>,
    /// The pages on which no text could be recognized, with commas between them.
    missing_pages: Option<String>,
    /// How many pictures and objects of other programs inside of the text could not be read.
    missing_pictures: Option<i64>,
    /// Number of formulas of a workbook without a stored result.
    missing_results: Option<i64>,
    /// The language that it was transcribed as although no model could tell whether it is spoken there, a tag.
    assumed_language: Option<String>,
}

impl DocumentFacts {
    /// What is known of a video.
    pub(crate) fn named(author: Option<&str>, language: Option<&str>) -> Self {
        Self {
            author: shown(author, LONGEST_AUTHOR),
            language: shown(language, LONGEST_TAG),
            ..Self::default()
        }
    }

    /// What reading it told.
    pub(crate) fn of(digitized: &Digitized) -> Self {
        let document = &digitized.document;
        let missing = digitized.missing.iter().take(MOST_MISSING);
        let missing: Vec<String> = missing.map(u32::to_string).collect();
        Self {
            author: shown(document.author.as_deref(), LONGEST_AUTHOR),
            language: shown(document.language.as_deref(), LONGEST_TAG),
            pages: document.pages.map(i64::from),
            missing_pages: Some(missing.join(",")).filter(|pages| !pages.is_empty()),
            missing_pictures: Some(digitized.missing_pictures.into()).filter(|count| *count > 0),
            missing_results: Some(document.missing_results.into()).filter(|count| *count > 0),
            assumed_language: None,
        }
    }

    /// The same of a recording that was transcribed as a language which was assumed, if one was.
    pub(crate) fn assuming(self, assumed_language: Option<String>) -> Self {
        Self {
            assumed_language,
            ..self
        }
    }

    /// As rows have it.
    pub(crate) fn stored_missing_pages(&self) -> Option<&str> {
        self.missing_pages.as_deref()
    }

    /// The language that is spoken, where its platform names one: these codes stand for none, several, and no words.
    pub(crate) fn spoken_language(&self) -> Option<&str> {
        let named = self.language.as_deref();
        named.filter(|tag| !["und", "mul", "zxx"].contains(&primary(tag)))
    }

    /// How many pictures and objects of other programs inside of the text could not be read.
    pub(crate) fn missing_pictures(&self) -> Option<i64> {
        self.missing_pictures
    }

    /// Number of formulas of a workbook without a stored result.
    pub(crate) fn missing_results(&self) -> Option<i64> {
        self.missing_results
    }

    /// The language that it was transcribed as although no model could tell whether it is spoken there, a tag.
    pub(crate) fn assumed_language(&self) -> Option<&str> {
        self.assumed_language.as_deref()
    }

    /// The pages on which no text could be recognized, in order, the first 1,000.
    pub(crate) fn missing_pages(&self) -> Vec<u32> {
        let pages = self.missing_pages.as_deref().unwrap_or_default().split(',');
        pages.filter_map(|page| page.parse().ok()).collect()
    }

    /// What may be wrong with the text, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let assumed = self.assumed_language.as_deref().map(|tag| {
            let why = NotUnderstood::Detection;
            format!("the recording was transcribed as {tag:?}, whatever is spoken there: {why}")
        });
        let pictures = self.missing_pictures.map(|count| match count {
            1 => "the text in a picture or an embedded object could not be read".to_owned(),
            count => format!("the text in {count} pictures or embedded objects could not be read"),
        });
        let results = self.missing_results.map(|count| {
            let formulas = match count {
                1 => "a formula has no stored result".to_owned(),
                count => format!("{count} formulas have no stored result"),
            };
            format!("{formulas}: open and save the file in a spreadsheet program")
        });
        let missing = self.missing_text().into_iter();
        let missing = missing.chain(pictures).chain(results);
        missing.chain(assumed).collect()
    }

    /// On which pages text is missing.
    fn missing_text(&self) -> Option<String> {
        let missing = self.missing_pages();
        let named: Vec<String> = missing
            .iter()
            .take(MOST_NAMED)
            .map(u32::to_string)
            .collect();
        let (pages, named) = match missing.len() {
            0 => return None,
            1 => ("page", named.join(", ")),
            all if all > MOST_NAMED => ("pages", format!("{} and others", named.join(", "))),
            _ => ("pages", named.join(", ")),
        };
        Some(format!("no text could be recognized on {pages} {named}"))
    }

    /// The language for the index of a text: the one that the document names, unless the text is plainly in another one. Programs name the
    /// language of their user in whatever that writes.
    pub(crate) fn language_of(&self, text: &str) -> Option<Language> {
        let named = Language::from_tag(self.language.as_deref()?);
        let seen = Language::detect(text);
        (named != Language::UNKNOWN && (seen == named || seen == Language::UNKNOWN))
            .then_some(named)
    }
}

/// A text of strangers as it may be shown; `None` where nothing is left.
fn shown(text: Option<&str>, most: usize) -> Option<String> {
    let text = text.unwrap_or_default().trim().chars();
    let text: String = text.filter(|c| !c.is_control()).take(most).collect();
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(pages: &str) -> DocumentFacts {
        DocumentFacts {
            missing_pages: Some(pages.to_owned()),
            ..DocumentFacts::default()
        }
    }

    #[test]
    fn missing_pages_are_named() {
        assert!(DocumentFacts::default().warnings().is_empty());
        for (pages, expected) in [
            ("7", "no text could be recognized on page 7"),
            ("2,5", "no text could be recognized on pages 2, 5"),
        ] {
            assert_eq!(missing(pages).warnings(), [expected]);
        }
        let many: Vec<String> = (1..=30).map(|page| page.to_string()).collect();
        let warnings = missing(&many.join(",")).warnings();
        assert!(warnings[0].ends_with("19, 20 and others"), "{warnings:?}");
    }

    #[test]
    fn pictures_and_assumed_languages_are_told() {
        let facts = DocumentFacts {
            missing_pictures: Some(3),
            assumed_language: Some("en".to_owned()),
            ..missing("2")
        };
        let [pages, pictures, language] = facts.warnings().try_into().unwrap();
        assert!(pages.ends_with("on page 2"), "{pages}");
        assert!(
            pictures.contains("3 pictures or embedded objects"),
            "{pictures}"
        );
        assert!(language.contains("as \"en\""), "{language}");
    }

    #[test]
    fn formulas_without_a_result_are_told() {
        for (count, expected) in [(1, "a formula has"), (12, "12 formulas have")] {
            let facts = DocumentFacts {
                missing_results: Some(count),
                ..DocumentFacts::default()
            };
            let expected = format!(
                "{expected} no stored result: open and save the file in a spreadsheet program"
            );
            assert_eq!(facts.warnings(), [expected]);
        }
    }

    #[test]
    fn a_language_is_believed_unless_the_text_is_in_another() {
        let named = |tag: &str| DocumentFacts {
            language: Some(tag.to_owned()),
            ..DocumentFacts::default()
        };
        let german = "Die Löwen schlafen den ganzen Tag, während die Bären im Wasser spielen und sich freuen.";
        let tag = |facts: DocumentFacts, text: &str| facts.language_of(text).map(Language::tag);
        assert_eq!(tag(named("de-AT"), german), Some("de"));
        assert_eq!(tag(named("en-US"), german), None);
        assert_eq!(tag(named("pl"), "42"), Some("pl"));
        assert_eq!(tag(named("tlh"), german), None);
        assert_eq!(tag(DocumentFacts::default(), german), None);
    }
}
