//! The system prompt of a character.

use colloquy_knowledge::{Passage, quoting};

use super::ReplyContext;

/// How a reply has to be so that it can be spoken.
const VOICE_RULES: &str = "\
You are on a voice call. What you write is spoken aloud at once, and the visitor's words come from speech recognition, so \
they may hold mistakes. Answer in one to three short spoken sentences. Use plain words only: no Markdown, lists, headings, \
links, emoji or stage directions. Write numbers and abbreviations as they are said. If you did not understand, ask back \
briefly.";

/// How a reply has to be so that it can be heard as a voice message.
const VOICE_MESSAGE_RULES: &str = "\
You exchange voice messages. What you write is read aloud, and the visitor's words may come from speech recognition, so \
they may hold mistakes. Use plain words only: no Markdown, lists, headings, links, emoji or stage directions. Write \
numbers and abbreviations as they are said.";

/// Where the reply goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptStyle {
    /// It is spoken in a call.
    Spoken,
    /// It is read aloud in a message.
    VoiceMessage,
    /// It is read.
    Written,
}

/// The personality, then how to speak, then what was looked up. What is written begins with a greeting; in a call the
/// greeting was heard before.
pub(super) fn system(speaker: &ReplyContext, manner: PromptStyle, passages: &[Passage]) -> String {
    let mut parts = vec![speaker.personality.trim().to_owned()];
    match manner {
        PromptStyle::Spoken => parts.push(VOICE_RULES.to_owned()),
        PromptStyle::VoiceMessage => parts.push(VOICE_MESSAGE_RULES.to_owned()),
        PromptStyle::Written => {}
    }
    if manner != PromptStyle::Spoken
        && let Some(greeting) = speaker.greetings.first()
    {
        parts.push(format!("You open a conversation by saying: {greeting}"));
    }
    if let Some(language) = &speaker.language {
        parts.push(format!("Speak the language with the tag {language}."));
    }
    parts.push(quoting::quote(passages));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker() -> ReplyContext {
        ReplyContext {
            name: None,
            personality: " You are Max. ".to_owned(),
            language: Some("de".to_owned()),
            greetings: vec!["Hallo!".to_owned()],
            knowledge: None,
        }
    }

    #[test]
    fn the_parts_stand_in_order() {
        let passage = Passage {
            title: "The \"old\" lions".to_owned(),
            text: "They sleep.".to_owned(),
            score: 1.0,
            ..Passage::default()
        };
        let prompt = system(&speaker(), PromptStyle::Spoken, &[passage]);
        assert!(prompt.starts_with("You are Max.\n\nYou are on a voice call."));
        assert!(prompt.contains("tag de."));
        assert!(
            prompt.ends_with("<passage title=\"The \\\"old\\\" lions\">\nThey sleep.\n</passage>")
        );
        let below = Passage {
            title: "faq.md".to_owned(),
            headings: vec!["FAQ".to_owned(), "Is it free on Sundays?".to_owned()],
            text: "Yes.".to_owned(),
            ..Passage::default()
        };
        let prompt = system(&speaker(), PromptStyle::Spoken, &[below]);
        let quoted = "<passage title=\"faq.md > FAQ > Is it free on Sundays?\">\nYes.\n</passage>";
        assert!(prompt.ends_with(quoted), "{prompt}");
        // Vowel signs and joiners stay, which are no letters of their own.
        let thai = "\u{0e40}\u{0e1b}\u{0e34}\u{0e14}";
        let hindi = "\u{0915}\u{094d}\u{200d}\u{0937}";
        let below = Passage {
            title: format!("a\\b\n</passage>\u{7f}{thai}"),
            headings: vec![hindi.to_owned()],
            ..Passage::default()
        };
        let prompt = system(&speaker(), PromptStyle::Spoken, &[below]);
        let quoted = format!(
            "<passage title=\"a\\\\b\\n< /passage>\\u{{7f}}{thai} > {hindi}\">\n\n</passage>"
        );
        assert!(prompt.ends_with(&quoted), "{prompt}");
        let written = system(&speaker(), PromptStyle::Written, &[]);
        assert_eq!(
            written,
            "You are Max.\n\nYou open a conversation by saying: Hallo!\n\nSpeak the language with the tag de."
        );
        let message = system(&speaker(), PromptStyle::VoiceMessage, &[]);
        assert!(message.starts_with("You are Max.\n\nYou exchange voice messages."));
        assert!(message.contains("by saying: Hallo!"));
    }
}
