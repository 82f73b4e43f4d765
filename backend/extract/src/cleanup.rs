//! Joins what the lines of a page part, and the like, as `unpdf` does it by its standard.
//!
//! It compiles the expressions of each of its steps anew for every text, which takes longer than all else that is done to a page's text. So a
//! page goes through those steps only that it has something for: what the others look for is not in it.

use std::sync::OnceLock;

use unpdf::{CleanupOptions, render::CleanupPipeline};

/// The longest mark of a list, in characters: `(123)`.
const LONGEST_MARK: usize = 5;

/// The steps that a text has something for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steps {
    /// A word or a range of numbers may be parted at its hyphen.
    hyphens: bool,
    /// A mark of a list may stand alone on its line.
    marks: bool,
    /// Characters of scripts without spaces may be parted by a line.
    cjk: bool,
    /// There are lines that are no paragraphs.
    lines: bool,
}

impl Steps {
    const COMBINATIONS: usize = 16;

    const ALL: Self = Self {
        hyphens: true,
        marks: true,
        cjk: true,
        lines: true,
    };

    fn of(text: &str) -> Self {
        // What it stands between is beside each other once it is taken away, which comes before these steps.
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return Self::ALL;
        }
        let mut ends = text.match_indices('\n').map(|(at, _)| at);
        let is_single = |at: usize| {
            let bytes = text.as_bytes();
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            before != Some(&b'\n') && bytes.get(at + 1) != Some(&b'\n')
        };
        let is_short = |line: &str| {
            let line = line.trim();
            !line.is_empty() && line.chars().nth(LONGEST_MARK).is_none()
        };
        Self {
            hyphens: text
                .split('-')
                .skip(1)
                .any(|rest| rest.starts_with(char::is_whitespace)),
            marks: text.lines().any(is_short),
            // The first of them are the Hangul of U+1100.
            cjk: text.chars().any(|character| character >= '\u{1100}'),
            lines: ends.any(is_single),
        }
    }

    /// A number below [`Steps::COMBINATIONS`].
    fn number(self) -> usize {
        let Self {
            hyphens,
            marks,
            cjk,
            lines,
        } = self;
        [hyphens, marks, cjk, lines]
            .iter()
            .fold(0, |number, step| number * 2 + usize::from(*step))
    }

    fn pipeline(self) -> CleanupPipeline {
        CleanupPipeline::new(CleanupOptions {
            fix_hyphenation: self.hyphens,
            merge_list_markers: self.marks,
            merge_cjk_lines: self.cjk,
            merge_single_newlines: self.lines,
            ..CleanupOptions::standard()
        })
    }
}

/// A text with the steps of the standard.
pub(crate) fn cleaned(text: &str) -> String {
    static PIPELINES: [OnceLock<CleanupPipeline>; Steps::COMBINATIONS] =
        [const { OnceLock::new() }; Steps::COMBINATIONS];
    let steps = Steps::of(text);
    let pipeline = &PIPELINES[steps.number()];
    pipeline.get_or_init(|| steps.pipeline()).process(text)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// What the steps look for, and what is near it.
    const PIECES: [&str; 37] = [
        "a",
        "B",
        "word",
        "12",
        "7",
        " ",
        "   ",
        "\t",
        "\n",
        "\n\n",
        "\n\n\n",
        "-",
        "- ",
        "-\n",
        "•",
        "● ",
        "1.",
        "(12)",
        "가.",
        "❶",
        "■\n",
        "漢",
        "한",
        "かな",
        "。",
        ".",
        "! ",
        "# ",
        "### H",
        "|",
        "| a | b |\n",
        "* ",
        "```\n",
        "\u{fb01}",
        "\r\n",
        "\u{2028}",
        "\u{fffd}",
    ];

    proptest! {
        // The standard takes a tenth of a second for each without optimization.
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn what_is_left_out_would_have_changed_nothing(pieces in vec(prop::sample::select(&PIECES[..]), 0..40)) {
            static STANDARD: OnceLock<CleanupPipeline> = OnceLock::new();
            let standard = STANDARD.get_or_init(|| CleanupPipeline::new(CleanupOptions::standard()));
            let text = pieces.concat();
            prop_assert_eq!(cleaned(&text), standard.process(&text));
        }
    }

    #[test]
    fn each_step_is_for_something() {
        let none = Steps {
            hyphens: false,
            marks: false,
            cjk: false,
            lines: false,
        };
        for (text, steps) in [
            ("A low-level paragraph.\n\nAnd another one, é.", none),
            (
                "An infor- mation.",
                Steps {
                    hyphens: true,
                    ..none
                },
            ),
            (
                "Before.\n\n(12)\n\nAfter it.",
                Steps {
                    marks: true,
                    ..none
                },
            ),
            ("日本語の長い文章。", Steps { cjk: true, ..none }),
            (
                "One line\nand another.",
                Steps {
                    lines: true,
                    ..none
                },
            ),
        ] {
            assert_eq!(Steps::of(text), steps, "{text}");
        }
        assert_eq!(
            (none.number(), Steps::ALL.number()),
            (0, Steps::COMBINATIONS - 1)
        );
    }
}
