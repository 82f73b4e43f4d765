//! One turn of the character: text that becomes sentences, sentences that become speech, speech that becomes frames.
//! Keeps account of what was played, and therefore of what was said.

use std::collections::VecDeque;
use std::time::Duration;

use crate::interface::{EngineConfig, LineId, ReplyId, SentenceId};
use crate::outbound::FRAME_SAMPLES;
use crate::outbound::resample::Resampler;
use crate::outbound::sentences::Splitter;
use crate::outbound::speech::Speech;
use crate::transcript::spoken_part;

/// Sentences asked for ahead of the one that plays: enough to speak without a pause, little to waste in a barge-in.
const SENTENCES_AHEAD: usize = 2;
/// How long the visitor hears nothing before a clause is said instead of a whole sentence.
const CLAUSE_AFTER: Duration = Duration::from_millis(1_500);
/// How long a character of text takes to speak, at 48 kHz: about 15 a second. Stands in for the length of a sentence
/// whose speech is not complete.
const SAMPLES_PER_CHARACTER: u64 = 3200;

/// Why the character speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Reply(ReplyId),
    /// A greeting, or a word about an interruption.
    Script,
    /// Its failure is nothing to apologise for.
    Apology,
}

struct Sentence {
    id: SentenceId,
    /// With the white space before it.
    text: String,
    speech: Speech,
    begun: bool,
    failed: bool,
    /// The word of patience, which is no part of the reply.
    is_aside: bool,
}

impl Sentence {
    fn spoken(&self) -> &str {
        let complete = self.speech.is_ended() && !self.failed;
        let received = self.speech.received();
        let total = match complete {
            true => received,
            false => received.max(self.text.chars().count() as u64 * SAMPLES_PER_CHARACTER),
        };
        spoken_part(&self.text, self.speech.played(), total)
    }
}

/// A word of patience before a reply, which is a line of its own.
pub(super) struct Aside {
    pub(super) line: LineId,
    /// When its first frame went out, in call time.
    pub(super) at: Option<Duration>,
    /// Whether the client has its final words.
    pub(super) is_told: bool,
    /// Its words, once they are over.
    said: Option<String>,
}

/// What began in a frame.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Began {
    /// A sentence of the turn.
    pub(super) sentence: bool,
    /// The word of patience.
    pub(super) aside: bool,
}

pub(super) struct Turn {
    pub(super) source: Source,
    pub(super) line: LineId,
    pub(super) aside: Option<Aside>,
    /// When its first own frame went out, in call time.
    pub(super) audible_at: Option<Duration>,
    /// Whether to apologise when it is over.
    pub(super) failed: bool,
    text_open: bool,
    splitter: Splitter,
    sentences: VecDeque<Sentence>,
    /// The words of sentences that are over.
    said: String,
    /// When a provider last gave something, or was first asked.
    text_progress_at: Duration,
    speech_progress_at: Duration,
    /// Since when nothing is there to be heard while the reply is being written.
    idle_since: Option<Duration>,
    /// Whether the visitor has waited long enough for a clause.
    is_hurried: bool,
}

impl Turn {
    pub(super) fn reply(now: Duration, reply: ReplyId, line: LineId) -> Self {
        Self {
            source: Source::Reply(reply),
            line,
            aside: None,
            audible_at: None,
            failed: false,
            text_open: true,
            splitter: Splitter::default(),
            sentences: VecDeque::new(),
            said: String::new(),
            text_progress_at: now,
            speech_progress_at: now,
            idle_since: Some(now),
            is_hurried: false,
        }
    }

    pub(super) fn script(now: Duration, source: Source, text: &str, line: LineId) -> Self {
        let mut turn = Self {
            source,
            text_open: false,
            ..Self::reply(now, ReplyId(0), line)
        };
        turn.splitter.push(text);
        turn
    }

    /// The reply that is still being written.
    pub(super) fn open_reply(&self) -> Option<ReplyId> {
        match self.source {
            Source::Reply(reply) if self.text_open => Some(reply),
            _ => None,
        }
    }

    pub(super) fn push_text(&mut self, now: Duration, delta: &str) {
        self.text_progress_at = now;
        self.splitter.push(delta);
    }

    /// Forgets what was written so far, except a word of patience. Returns the sentences whose speech is not complete.
    pub(super) fn retract(&mut self, now: Duration) -> Vec<SentenceId> {
        let (kept, retracted): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.sentences)
            .into_iter()
            .partition(|sentence| sentence.is_aside);
        self.sentences = kept;
        self.splitter = Splitter::default();
        self.said.clear();
        self.failed = false;
        self.text_progress_at = now;
        self.idle_since = None;
        self.is_hurried = false;
        let unfinished = retracted.iter().filter(|one| !one.speech.is_ended());
        unfinished.map(|sentence| sentence.id).collect()
    }

    pub(super) fn pending_text_bytes(&self) -> usize {
        self.splitter.pending_bytes()
    }

    pub(super) fn close_text(&mut self) {
        self.text_open = false;
    }

    /// The words to ask speech for now, if any.
    pub(super) fn next_to_speak(&mut self) -> Option<String> {
        let ahead = self
            .sentences
            .iter()
            .filter(|sentence| !sentence.begun)
            .count();
        if ahead >= SENTENCES_AHEAD {
            return None;
        }
        match self.text_open {
            true => self.splitter.next_sentence(),
            false => self.splitter.next_at_end(),
        }
    }

    pub(super) fn speak(&mut self, now: Duration, id: SentenceId, text: String) {
        self.push_sentence(now, id, text, false);
    }

    /// Says a word of patience before the reply.
    pub(super) fn speak_aside(
        &mut self,
        now: Duration,
        id: SentenceId,
        text: String,
        line: LineId,
    ) {
        self.aside = Some(Aside {
            line,
            at: None,
            is_told: false,
            said: None,
        });
        self.push_sentence(now, id, text, true);
    }

    fn push_sentence(&mut self, now: Duration, id: SentenceId, text: String, is_aside: bool) {
        self.idle_since = None;
        self.is_hurried = false;
        if self.unfinished_speech().next().is_none() {
            self.speech_progress_at = now;
        }
        let speech = Speech::default();
        self.sentences.push_back(Sentence {
            id,
            text,
            speech,
            begun: false,
            failed: false,
            is_aside,
        });
    }

    /// Looks whether something is there to be heard, now.
    pub(super) fn note_silence(&mut self, now: Duration) {
        match self.is_idle() {
            true => _ = self.idle_since.get_or_insert(now),
            false => self.idle_since = None,
        }
    }

    /// Whether all that was written of a reply was said, and more is to come.
    pub(super) fn is_idle(&self) -> bool {
        self.open_reply().is_some() && self.sentences.is_empty()
    }

    /// When a clause is enough.
    pub(super) fn clause_deadline(&self) -> Option<Duration> {
        let since = self.idle_since.filter(|_| self.is_idle())?;
        (!self.is_hurried).then(|| since.saturating_add(CLAUSE_AFTER))
    }

    /// Lets the next sentence end at a clause.
    pub(super) fn hurry(&mut self) {
        self.is_hurried = true;
        self.splitter.hurry();
    }

    /// When a word of patience is due: before the first words of a reply, and once.
    pub(super) fn patience_deadline(&self, config: &EngineConfig) -> Option<Duration> {
        let since = self.idle_since.filter(|_| self.is_idle())?;
        let is_due =
            self.audible_at.is_none() && self.aside.is_none() && config.patience_message.is_some();
        is_due.then(|| since.saturating_add(config.patience_after))
    }

    /// Whether something of the turn was heard.
    pub(super) fn is_audible(&self) -> bool {
        self.audible_at.is_some() || self.aside.as_ref().is_some_and(|aside| aside.at.is_some())
    }

    /// The words of the word of patience: of all of it, or only the part that was played.
    pub(super) fn aside_text(&self, only_played: bool) -> String {
        let said = self.aside.as_ref().and_then(|aside| aside.said.clone());
        let text = said.unwrap_or_else(|| {
            let aside = self.sentences.iter().find(|sentence| sentence.is_aside);
            let text = aside.map(|sentence| match only_played {
                true => sentence.spoken(),
                false => &sentence.text,
            });
            text.unwrap_or_default().to_owned()
        });
        text.trim().to_owned()
    }

    /// Whether the word of patience is over and nobody was told so.
    pub(super) fn has_untold_aside(&self) -> bool {
        let over = |aside: &Aside| aside.said.is_some() && aside.at.is_some() && !aside.is_told;
        self.aside.as_ref().is_some_and(over)
    }

    /// The speech that is still being made under this id.
    pub(super) fn speech_mut(&mut self, now: Duration, id: SentenceId) -> Option<&mut Speech> {
        let sentence = self
            .sentences
            .iter_mut()
            .find(|sentence| sentence.id == id)?;
        if sentence.speech.is_ended() {
            return None;
        }
        self.speech_progress_at = now;
        Some(&mut sentence.speech)
    }

    /// Goes on without the rest of a sentence. Says whether there was something to give up.
    pub(super) fn fail_speech(&mut self, now: Duration, id: SentenceId) -> bool {
        let unfinished =
            |sentence: &&mut Sentence| sentence.id == id && !sentence.speech.is_ended();
        let Some(sentence) = self.sentences.iter_mut().find(unfinished) else {
            return false;
        };
        sentence.failed = true;
        sentence.speech.end();
        // Nobody misses a word of patience.
        let is_missed = !sentence.is_aside;
        self.speech_progress_at = now;
        self.failed |= is_missed;
        true
    }

    /// Sentences whose speech is not complete.
    pub(super) fn unfinished_speech(&self) -> impl Iterator<Item = SentenceId> + '_ {
        self.sentences
            .iter()
            .filter(|sentence| !sentence.speech.is_ended())
            .map(|sentence| sentence.id)
    }

    /// When the model counts as stalled.
    pub(super) fn text_deadline(&self, timeout: Duration) -> Option<Duration> {
        self.open_reply()
            .map(|_| self.text_progress_at.saturating_add(timeout))
    }

    /// When the synthesizer counts as stalled. One clock for all sentences, since it may make one after the other.
    pub(super) fn speech_deadline(&self, timeout: Duration) -> Option<Duration> {
        self.unfinished_speech()
            .next()
            .map(|_| self.speech_progress_at.saturating_add(timeout))
    }

    /// Whether a frame can go out now: a full one, or the last of the speech that is there.
    pub(super) fn prepare_frame(&mut self, spare: &mut Option<Resampler>) -> bool {
        let ready = self.gather_frame();
        self.drop_played(spare);
        ready
    }

    fn gather_frame(&mut self) -> bool {
        let mut have = 0;
        for sentence in &mut self.sentences {
            let before = have;
            have += sentence.speech.prepare(FRAME_SAMPLES - have);
            if have == FRAME_SAMPLES {
                return true;
            }
            if !sentence.speech.is_ended() {
                // The end of a sentence does not wait for the beginning of the next.
                return before > 0 && have == before;
            }
        }
        have > 0
    }

    /// Fills a frame. Says what began in it.
    pub(super) fn fill_frame(
        &mut self,
        frame: &mut [i16; FRAME_SAMPLES],
        spare: &mut Option<Resampler>,
    ) -> Began {
        frame.fill(0);
        let mut filled = 0;
        let mut began = Began::default();
        while filled < FRAME_SAMPLES
            && let Some(sentence) = self.sentences.front_mut()
        {
            let taken = sentence.speech.take(&mut frame[filled..]);
            if taken > 0 && !sentence.begun {
                sentence.begun = true;
                match sentence.is_aside {
                    true => began.aside = true,
                    false => began.sentence = true,
                }
            }
            filled += taken;
            if !sentence.speech.is_drained() {
                break;
            }
            self.drop_played(spare);
        }
        began
    }

    /// The words so far: of every sentence that began, or only the part that was played.
    pub(super) fn text(&self, only_played: bool) -> String {
        let mut text = self.said.clone();
        let own = |sentence: &&Sentence| sentence.begun && !sentence.is_aside;
        for sentence in self.sentences.iter().filter(own) {
            text.push_str(if only_played {
                sentence.spoken()
            } else {
                &sentence.text
            });
        }
        text.trim().to_owned()
    }

    /// Whether nothing is left to write, to make or to play.
    pub(super) fn is_over(&self) -> bool {
        !self.text_open && self.sentences.is_empty()
    }

    fn drop_played(&mut self, spare: &mut Option<Resampler>) {
        while self
            .sentences
            .front()
            .is_some_and(|sentence| sentence.speech.is_drained())
        {
            let Some(sentence) = self.sentences.pop_front() else {
                return;
            };
            if sentence.is_aside {
                if let Some(aside) = &mut self.aside {
                    aside.said = Some(sentence.spoken().to_owned());
                }
            } else if sentence.begun {
                self.said.push_str(sentence.spoken());
            }
            *spare = sentence.speech.into_resampler().or_else(|| spare.take());
        }
    }
}
