//! The language of templates, decided on the engine's own tokens before it parses anything.
//!
//! Only what is listed here gets through. Everything that builds a value out of others, such as arithmetic, `~`, lists
//! and calls, is refused by its name: a few of those in a row make gigabytes. What is left is bounded in length and in
//! depth, so that the engine's parser, which recurses, stays far from the end of its stack.

use minijinja::{
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
};

use crate::problem::Problem;

/// The templates of a character, in bytes, together.
const MAX_BYTES: usize = 512 * 1024;
/// The tokens of a character's templates together.
const MAX_TOKENS: usize = 20_000;
/// The tokens of one placeholder or tag.
const MAX_TAG_TOKENS: usize = 100;
/// Blocks inside each other; an `elif` counts as one, since it is an `if` inside the `else`.
const MAX_DEPTH: usize = 50;
/// Brackets inside each other.
const MAX_BRACKETS: usize = 8;
/// The longest text in quotes, in bytes.
const MAX_STRING_BYTES: usize = 4 * 1024;
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The filters that a template may use.
const FILTERS: [&str; 9] = [
    "default",
    "lower",
    "upper",
    "title",
    "capitalize",
    "trim",
    "length",
    "first",
    "last",
];
/// The tests that a template may use.
const TESTS: [&str; 3] = ["defined", "undefined", "none"];

/// Checks the templates of one character, one after the other.
#[derive(Debug, Default)]
pub(super) struct Language {
    bytes: usize,
    tokens: usize,
}

impl Language {
    /// Returns true if the templates that were checked are more than a character may have.
    pub(super) fn is_exceeded(&self) -> bool {
        self.bytes > MAX_BYTES || self.tokens > MAX_TOKENS
    }

    /// Checks one more template.
    ///
    /// # Errors
    /// Names the field, what is not available or too much, and the beginning of the placeholder or tag.
    pub(super) fn check(&mut self, field: &str, text: &str) -> Result<(), Problem> {
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            let most = MAX_BYTES / 1024;
            let message = format!("the templates of a character have at most {most} KiB together");
            return Err(Problem::new(field, message));
        }
        let mut began = 0;
        let checked = self.check_tags(text, &mut began);
        checked.map_err(|wrong| match wrong {
            TemplateError::Here(message) => Problem::new(field, message).at(text, began),
            TemplateError::Malformed(error) => Problem::of_engine(field, &error),
        })
    }

    /// Checks the placeholders and tags; `began` is set to the byte at which the last one begins.
    fn check_tags(&mut self, text: &str, began: &mut usize) -> Result<(), TemplateError> {
        let mut blocks = Blocks::default();
        // The tokens of the placeholder or tag that is being read.
        let mut tag: Option<Vec<Token<'_>>> = None;
        for token in tokenize(text, false, SyntaxConfig::default()) {
            let (token, span) = token.map_err(TemplateError::Malformed)?;
            if matches!(token, Token::VariableStart | Token::BlockStart) {
                *began = span.start_offset as usize;
            }
            self.tokens += 1;
            if self.tokens > MAX_TOKENS {
                return wrong("the character's placeholders and tags are too many");
            }
            match token {
                Token::VariableStart | Token::BlockStart => tag = Some(Vec::new()),
                Token::VariableEnd => check_expression(&tag.take().unwrap_or_default())?,
                Token::BlockEnd => blocks.check(&tag.take().unwrap_or_default())?,
                token => {
                    let Some(tokens) = &mut tag else { continue };
                    if tokens.len() == MAX_TAG_TOKENS {
                        return wrong(format!(
                            "a placeholder or tag has at most {MAX_TAG_TOKENS} words and signs"
                        ));
                    }
                    tokens.push(token);
                }
            }
        }
        Ok(())
    }
}

/// What is wrong with a template.
enum TemplateError {
    Here(String),
    Malformed(minijinja::Error),
}

fn wrong<T>(message: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError::Here(message.into()))
}

/// The blocks that are open: how deep each of them makes the template.
#[derive(Debug, Default)]
struct Blocks(Vec<usize>);

impl Blocks {
    fn check(&mut self, tokens: &[Token<'_>]) -> Result<(), TemplateError> {
        let Some((Token::Ident(tag), rest)) = tokens.split_first() else {
            return wrong("a tag begins with if or for");
        };
        match *tag {
            "if" => {
                self.0.push(1);
                check_expression(rest)?;
            }
            "elif" => {
                if let Some(depth) = self.0.last_mut() {
                    *depth += 1;
                }
                check_expression(rest)?;
            }
            "for" => {
                self.0.push(1);
                check_loop(rest)?;
            }
            "endif" | "endfor" => {
                // Whether it ends the right block is the parser's question.
                self.0.pop();
            }
            "else" => {}
            unknown => return wrong(format!("unknown tag {}; use if and for", short(unknown))),
        }
        if self.0.iter().sum::<usize>() > MAX_DEPTH {
            return wrong(format!(
                "blocks are inside each other at most {MAX_DEPTH} deep, and an elif counts as one"
            ));
        }
        Ok(())
    }
}

/// `name in list`, where the list is named and not made; `name, other in list` of pairs; and a condition after it.
fn check_loop(tokens: &[Token<'_>]) -> Result<(), TemplateError> {
    let names = match tokens {
        [Token::Ident(_), Token::Ident("in"), ..] => 1,
        [
            Token::Ident(_),
            Token::Comma,
            Token::Ident(_),
            Token::Ident("in"),
            ..,
        ] => 3,
        _ => return wrong("a loop is written: for name in list"),
    };
    for token in &tokens[..names] {
        check_name(token)?;
    }
    let rest = &tokens[names + 1..];
    let ends = |token: &Token<'_>| matches!(token, Token::Ident("if" | "recursive"));
    let condition = rest.iter().position(ends).unwrap_or(rest.len());
    let (list, condition) = rest.split_at(condition);
    if list.is_empty()
        || !list.iter().all(|token| {
            use Token::{BracketClose, BracketOpen, Dot, Ident, Int, Str, String};
            matches!(
                token,
                Ident(_) | Dot | BracketOpen | BracketClose | Int(_) | Str(_) | String(_)
            )
        })
        || !matches!(list[0], Token::Ident(_))
    {
        return wrong("a loop runs over a list that is a parameter: for name in list");
    }
    check_expression(list)?;
    match condition {
        [] => Ok(()),
        [Token::Ident("if"), condition @ ..] => check_expression(condition),
        _ => wrong("a loop cannot be recursive"),
    }
}

/// What stands before a token of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preceding {
    /// Nothing, or something that a value follows.
    Operator,
    /// A value, or the end of one.
    Value,
    /// `.`, which a name follows.
    Dot,
    /// `|`, which a filter follows.
    Pipe,
    /// The name of a filter.
    Filter,
    /// `is`, which a test follows.
    Is,
}

/// What a bracket is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Group,
    Arguments,
    Subscript,
}

fn check_expression(tokens: &[Token<'_>]) -> Result<(), TemplateError> {
    let mut before = Preceding::Operator;
    let mut open: Vec<Bracket> = Vec::new();
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        check_name(token)?;
        before = match token {
            Token::Ident(name) => match before {
                Preceding::Pipe if FILTERS.contains(name) => Preceding::Filter,
                Preceding::Pipe => {
                    let known = FILTERS.join(", ");
                    return wrong(format!("unknown filter {}; there are {known}", short(name)));
                }
                Preceding::Is if *name == "not" => Preceding::Is,
                Preceding::Is if TESTS.contains(name) => Preceding::Value,
                Preceding::Is => {
                    let known = TESTS.join(", ");
                    return wrong(format!("unknown test {}; there are {known}", short(name)));
                }
                Preceding::Dot => Preceding::Value,
                _ => match *name {
                    "is" => Preceding::Is,
                    "and" | "or" | "not" | "in" | "if" | "else" => Preceding::Operator,
                    _ => Preceding::Value,
                },
            },
            Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => Preceding::Value,
            Token::Minus
                if before == Preceding::Operator
                    && matches!(tokens.peek(), Some(Token::Int(_) | Token::Float(_))) =>
            {
                Preceding::Operator
            }
            Token::Eq | Token::Ne | Token::Gt | Token::Gte | Token::Lt | Token::Lte => {
                Preceding::Operator
            }
            Token::Dot => Preceding::Dot,
            Token::Pipe => Preceding::Pipe,
            Token::ParenOpen => {
                open.push(match before {
                    Preceding::Operator => Bracket::Group,
                    Preceding::Filter => Bracket::Arguments,
                    _ => return wrong("calls are not available in templates"),
                });
                Preceding::Operator
            }
            Token::BracketOpen => {
                if !matches!(before, Preceding::Value | Preceding::Filter) {
                    return wrong("lists are not available in templates");
                }
                open.push(Bracket::Subscript);
                Preceding::Operator
            }
            Token::ParenClose | Token::BracketClose => {
                open.pop();
                Preceding::Value
            }
            Token::Comma if open.last() == Some(&Bracket::Arguments) => Preceding::Operator,
            Token::Comma => return wrong("lists are not available in templates"),
            Token::BraceOpen | Token::BraceClose => {
                return wrong("maps are not available in templates");
            }
            Token::Colon => return wrong("slices are not available in templates"),
            Token::Assign => return wrong("named arguments are not available in templates"),
            operator => {
                return wrong(format!(
                    "the operator {operator} is not available in templates"
                ));
            }
        };
        if open.len() > MAX_BRACKETS {
            return wrong(format!(
                "brackets are inside each other at most {MAX_BRACKETS} deep"
            ));
        }
    }
    Ok(())
}

/// Names and texts in quotes are short: the engine compares and repeats them.
fn check_name(token: &Token<'_>) -> Result<(), TemplateError> {
    match token {
        Token::Ident(name) if name.len() > MAX_NAME_BYTES => {
            wrong(format!("a name has at most {MAX_NAME_BYTES} bytes"))
        }
        Token::Str(text) if text.len() > MAX_STRING_BYTES => too_long(),
        Token::String(text) if text.len() > MAX_STRING_BYTES => too_long(),
        _ => Ok(()),
    }
}

fn too_long() -> Result<(), TemplateError> {
    let most = MAX_STRING_BYTES / 1024;
    wrong(format!("a text in quotes has at most {most} KiB"))
}

/// A word of a template, short enough for an error.
fn short(word: &str) -> &str {
    let end = word.char_indices().nth(40).map_or(word.len(), |(at, _)| at);
    &word[..end]
}
