//! What the engine asks of providers: each question is a task whose answers go back to the session.
//!
//! A question that is cancelled is dropped with its request. An answer that was under way at that moment carries an id
//! that the engine does not wait for any more.

use std::{collections::HashMap, sync::Arc, time::Duration};

use colloquy_analyses::{ConversationLine, UserProfile};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_generation::{PromptStyle, ReplyContext, ReplyRequest, Retrieval};
use colloquy_observability::carried;
use colloquy_providers::{ProviderError, Utterance};
use colloquy_speech::Voice;
use colloquy_voice::{
    Input, Line, Originator, PauseId, ReplyId, SentenceId, TranscriptionId, UtteranceStage,
};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{Media, detected_languages::DetectedLanguages, session::PROVIDER_GRACE};

/// Answers that may wait for the session. Providers that are faster than the engine wait here.
pub(super) const ANSWERS: usize = 64;

/// What comes back from a question.
#[derive(Debug)]
pub(super) enum Answer {
    /// For the engine.
    Engine(Input),
    /// The documents that a reply rests on.
    Retrieved(Retrieval),
    /// What is known of the visitor now; `None` where that could not be found out.
    Visitor(Option<UserProfile>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Question {
    Transcription(TranscriptionId),
    EndOfTurn(PauseId),
    Reply(ReplyId),
    Sentence(SentenceId),
    Visitor,
}

/// The questions of a session.
#[derive(Debug)]
pub(super) struct ProviderRequests {
    media: Media,
    context: Arc<CallContext>,
    answers: mpsc::Sender<Answer>,
    open: HashMap<Question, AbortOnDropHandle<()>>,
}

/// What every question of a call has in common.
#[derive(Debug)]
struct CallContext {
    speaker: ReplyContext,
    voice: Voice,
    claim: Claim,
    languages: DetectedLanguages,
}

impl ProviderRequests {
    /// No questions yet; their answers go to `answers`.
    pub(super) fn new(
        media: &Media,
        speaker: ReplyContext,
        voice: Voice,
        claim: Claim,
        answers: mpsc::Sender<Answer>,
    ) -> Self {
        // The time-out of a hung transcriber comes before this one, which is for both of its answers, and that of the engine after it.
        let limit = Duration::from_millis(media.config.calls.provider_timeout_ms.into())
            + PROVIDER_GRACE / 2;
        let context = Arc::new(CallContext {
            speaker,
            voice,
            claim,
            languages: DetectedLanguages::new(limit),
        });
        Self {
            media: media.clone(),
            context,
            answers,
            open: HashMap::new(),
        }
    }

    /// Asks for the words of an utterance.
    pub(super) fn transcribe(
        &mut self,
        transcription: TranscriptionId,
        samples: Vec<i16>,
        stage: UtteranceStage,
    ) {
        let (media, context, answers) = self.parts();
        self.ask(Question::Transcription(transcription), async move {
            // Words that are shown meanwhile come after those that somebody waits for.
            let priority = match stage {
                UtteranceStage::Running => Priority::Request,
                UtteranceStage::Paused | UtteranceStage::Over => Priority::Call,
            };
            let claim = Claim {
                priority,
                ..context.claim.clone()
            };
            let input = match words_of(&media, &context, samples, claim).await {
                Ok(text) => Input::Transcribed {
                    transcription,
                    text,
                },
                Err(error) => {
                    // It is asked again at the end.
                    match stage {
                        UtteranceStage::Running => tracing::debug!(provider = %error.provider, kind = ?error.kind, "no interim transcript"),
                        UtteranceStage::Paused | UtteranceStage::Over => log_failure(&error),
                    }
                    Input::TranscriptionFailed { transcription }
                }
            };
            let _ = answers.send(Answer::Engine(input)).await;
        });
    }

    /// Asks whether the turn seems to be over. Without an answer the hold stays as it is.
    pub(super) fn predict_end_of_turn(&mut self, pause: PauseId, samples: Vec<i16>) {
        let (media, context, answers) = self.parts();
        self.ask(Question::EndOfTurn(pause), async move {
            let Some(model) = &media.providers.turns.end_of_turn else {
                return;
            };
            match model.is_complete(samples, &context.claim).await {
                Ok(is_complete) => {
                    let input = Input::EndOfTurnPredicted { pause, is_complete };
                    let _ = answers.send(Answer::Engine(input)).await;
                }
                Err(error) => tracing::debug!(provider = %error.provider, kind = ?error.kind, "no prediction of the end of a turn"),
            }
        });
    }

    /// Asks the model for a reply to these lines.
    pub(super) fn reply(&mut self, reply: ReplyId, lines: Vec<Line>) {
        let (media, context, answers) = self.parts();
        self.ask(Question::Reply(reply), async move {
            let said = lines.iter().map(|line| {
                (
                    colloquy_generation::role(line.originator),
                    line.text.as_str(),
                )
            });
            let ask = ReplyRequest {
                speaker: &context.speaker,
                turns: colloquy_generation::turns(said),
                manner: PromptStyle::Spoken,
            };
            let generated = match colloquy_generation::reply(&media.generation, ask).await {
                Ok(generated) => generated,
                Err(error) => {
                    log_failure(&error);
                    let _ = answers
                        .send(Answer::Engine(Input::ReplyFailed { reply }))
                        .await;
                    return;
                }
            };
            // A reply that nothing was found for used no documents.
            let used = generated
                .retrieval
                .filter(|found| !found.documents.is_empty());
            if let Some(retrieval) = used {
                let _ = answers.send(Answer::Retrieved(retrieval)).await;
            }
            let mut text = generated.text;
            let mut end = Input::ReplyEnded { reply };
            while let Some(piece) = text.next().await {
                match piece {
                    Ok(delta) => {
                        let input = match delta.is_empty() {
                            true => Input::ReplyRetracted { reply },
                            false => Input::ReplyText { reply, delta },
                        };
                        if answers.send(Answer::Engine(input)).await.is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        log_failure(&error);
                        end = Input::ReplyFailed { reply };
                        break;
                    }
                }
            }
            let _ = answers.send(Answer::Engine(end)).await;
        });
    }

    /// Asks what is known of the visitor once this was said.
    pub(super) fn profile(&mut self, known: UserProfile, lines: Vec<Line>) {
        let (media, _, answers) = self.parts();
        self.ask(Question::Visitor, async move {
            let lines = lines.iter().map(|line| ConversationLine {
                is_of_user: line.originator == Originator::User,
                text: &line.text,
            });
            let lines: Vec<_> = lines.filter(|line| !line.text.is_empty()).collect();
            let profile = known.after(&media.analyses, &lines).await;
            let profile = profile.inspect_err(|error| {
                tracing::warn!(error = format!("{error:#}"), "an analysis failed in a call")
            });
            let _ = answers.send(Answer::Visitor(profile.ok())).await;
        });
    }

    /// Asks for the speech of a sentence.
    pub(super) fn speak(&mut self, sentence: SentenceId, text: String) {
        let (media, context, answers) = self.parts();
        self.ask(Question::Sentence(sentence), async move {
            let mut end = Input::SpeechEnded { sentence };
            match colloquy_speech::speak(&media.speech, &context.voice, &text, &context.claim).await
            {
                Ok(mut speech) => {
                    while let Some(piece) = speech.next().await {
                        match piece {
                            Ok(pcm) => {
                                let input = Input::Speech {
                                    sentence,
                                    samples: pcm.samples,
                                    sample_rate_hz: pcm.sample_rate_hz,
                                };
                                if answers.send(Answer::Engine(input)).await.is_err() {
                                    return;
                                }
                            }
                            Err(error) => {
                                log_failure(&error);
                                end = Input::SpeechFailed { sentence };
                                break;
                            }
                        }
                    }
                }
                Err(error) => {
                    log_failure(&error);
                    end = Input::SpeechFailed { sentence };
                }
            }
            let _ = answers.send(Answer::Engine(end)).await;
        });
    }

    /// Drops the question for the words of an utterance.
    pub(super) fn cancel_transcription(&mut self, transcription: TranscriptionId) {
        self.open.remove(&Question::Transcription(transcription));
    }

    /// Drops the question whether the turn is over.
    pub(super) fn cancel_prediction(&mut self, pause: PauseId) {
        self.open.remove(&Question::EndOfTurn(pause));
    }

    /// Drops the question for a reply.
    pub(super) fn cancel_reply(&mut self, reply: ReplyId) {
        self.open.remove(&Question::Reply(reply));
    }

    /// Drops the question what is known of the visitor.
    pub(super) fn cancel_profile(&mut self) {
        self.open.remove(&Question::Visitor);
    }

    /// Drops the question for a sentence's speech.
    pub(super) fn cancel_speech(&mut self, sentence: SentenceId) {
        self.open.remove(&Question::Sentence(sentence));
    }

    fn parts(&self) -> (Media, Arc<CallContext>, mpsc::Sender<Answer>) {
        (
            self.media.clone(),
            Arc::clone(&self.context),
            self.answers.clone(),
        )
    }

    fn ask(&mut self, question: Question, work: impl Future<Output = ()> + Send + 'static) {
        self.open.retain(|_, task| !task.is_finished());
        self.open.insert(
            question,
            AbortOnDropHandle::new(self.media.kernel.tasks.spawn(carried(work))),
        );
    }
}

/// Returns the words of an utterance. If the voice detects languages, the language of the utterance is detected first.
async fn words_of(
    media: &Media,
    context: &CallContext,
    samples: Vec<i16>,
    claim: Claim,
) -> Result<String, ProviderError> {
    let CallContext {
        voice, languages, ..
    } = context;
    let transcriber = &*media.providers.transcriber;
    if voice.detects_language {
        return languages.words(transcriber, samples, claim).await;
    }
    let utterance = Utterance::new(samples, voice.language.clone(), claim);
    transcriber.transcribe(utterance).await
}

fn log_failure(error: &ProviderError) {
    tracing::warn!(provider = %error.provider, kind = ?error.kind, "a provider failed in a call: {}", error.message);
}
