//! The job of a completion: hears the voice messages, asks for the reply, speaks it.

use std::{sync::Arc, time::Duration};

use colloquy_accounts::{Tenant, share_partner};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_characters::{self as characters, CharacterDocuments, NoDocumentMemory};
use colloquy_generation::{PromptStyle, ReplyContext, ReplyRequest};
use colloquy_http::memory::NoRoom;
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_providers::ChatRole;
use colloquy_speech::{Recorded, Voice};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    accept::Accepted,
    failure::Failure,
    output::{Output, OutputMessage},
    request::{Content, MessageKind, Question},
    store,
    voice_messages::VoiceMessages,
};
use crate::Messaging;

/// How often a completion is begun: after a process that died in the middle, and after a failure that may pass.
const ATTEMPTS: u32 = 4;
/// When a completion is begun again that found no memory for its character's documents, and how often before it fails, which takes some
/// ten minutes. The age of a completion does not tell: it may have waited for a server, or its turn, for longer than that.
const MEMORY: RetryRule = RetryRule {
    attempts: 24,
    first: Duration::from_secs(1),
    most: Duration::from_secs(30),
};
/// Why an answer has no sound of which nothing is left once what the voice does not read is left out.
const UNREAD: &str = "the voice reads nothing of it";
/// How long one attempt may take.
const LONGEST: Duration = Duration::from_secs(600);

/// Works on a completion until it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Complete {
    /// The completion's id.
    pub completion: String,
}

impl Job for Complete {
    type State = Messaging;

    const KIND: &'static str = "messaging.complete";

    /// It gives up by itself, after [`ATTEMPTS`], and says so in its row: the worker does when its processes die.
    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(60),
    };

    /// Few, since somebody who is called waits for the same services with more right.
    const AT_ONCE: usize = 12;

    fn dedup_key(&self) -> Option<String> {
        Some(self.completion.clone())
    }

    async fn run(self, messaging: Messaging, run: Run) -> anyhow::Result<RunResult> {
        let Some(row) = store::load_open(messaging.store.db(), &self.completion).await? else {
            return Ok(RunResult::Done);
        };
        let outcome = if run.attempt > ATTEMPTS {
            Err(Failure::Interrupted)
        } else {
            let (tenant, accepted) = row.accepted()?;
            let put_offs = run.put_offs();
            match messaging.documents(&tenant, &accepted.character) {
                Ok(documents) => {
                    let claim = Claim::new(Priority::Background, tenant.partner().as_str());
                    let completed = complete(&messaging, &tenant, accepted, documents, &claim);
                    let completed = timeout(LONGEST, completed).await;
                    let completed = completed.unwrap_or(Err(Failure::TimedOut.into()));
                    run.outcome(completed, ATTEMPTS)?
                }
                // Others are done with their documents soon.
                Err(NoDocumentMemory(NoRoom::Now)) if put_offs < MEMORY.attempts => {
                    return Ok(RunResult::PutOff(MEMORY.wait(put_offs + 1)));
                }
                Err(_) => Err(Failure::NoMemory),
            }
        };
        let now = messaging.clock.now_ms();
        let stored = run.insist(&messaging, || async {
            let transaction = messaging.store.begin().await?;
            share_partner(&transaction, &row.tenant()).await?;
            if !run.holds(&transaction).await? {
                return Ok(false);
            }
            match &outcome {
                Ok(output) => store::complete(&transaction, &row, output, now).await?,
                Err(failure) => store::fail(&transaction, &row, &failure.reason(), now).await?,
            }
            transaction.commit().await?;
            Ok(true)
        });
        if stored.await? {
            note(&self.completion, &outcome, now - row.created_at);
        }
        Ok(RunResult::Done)
    }

    async fn give_up(self, messaging: Messaging, run: Run, _why: GivenUp) -> anyhow::Result<()> {
        let Some(row) = store::load_open(messaging.store.db(), &self.completion).await? else {
            return Ok(());
        };
        let transaction = messaging.store.begin().await?;
        share_partner(&transaction, &row.tenant()).await?;
        if run.holds(&transaction).await? {
            let failure = Failure::Interrupted;
            let now = messaging.clock.now_ms();
            store::fail(&transaction, &row, &failure.reason(), now).await?;
            transaction.commit().await?;
            note(&self.completion, &Err(failure), now - row.created_at);
        }
        Ok(())
    }
}

/// Counts how a completion ended.
fn note(id: &str, outcome: &Result<Output, Failure>, took_ms: i64) {
    let code = match outcome {
        Ok(output) => {
            if let Some(reason) = &output.silence {
                tracing::warn!(completion = id, reason, "an answer has no sound");
            }
            "completed"
        }
        Err(failure) => {
            tracing::warn!(completion = id, reason = %failure, "a completion failed");
            failure.code()
        }
    };
    metrics::counter!("colloquy_messaging_completions_total", "outcome" => code).increment(1);
    metrics::histogram!("colloquy_messaging_completion_seconds").record(took_ms as f64 / 1_000.0);
}

/// The result. What the client is told about is a [`Failure`].
async fn complete(
    messaging: &Messaging,
    tenant: &Tenant,
    accepted: Accepted,
    documents: Option<CharacterDocuments>,
    claim: &Claim,
) -> anyhow::Result<Output> {
    let Accepted {
        question,
        character,
        character_params,
    } = accepted;
    let (question, character) = (&question, Arc::new(character));
    let rendered = characters::rendered(messaging, tenant, &character, &character_params).await?;
    let voice = colloquy_speech::voice_of(&messaging.speech, tenant, &character).await;
    let messages = heard(messaging, question, &voice, claim).await?;
    let speaker = ReplyContext::new(
        messaging,
        tenant,
        &character,
        &rendered,
        documents,
        Priority::Background,
    );
    Ok(answered(messaging, question, messages, &speaker, &voice, claim).await?)
}

/// The new messages with their words.
async fn heard(
    messaging: &Messaging,
    question: &Question,
    voice: &Voice,
    claim: &Claim,
) -> anyhow::Result<Vec<OutputMessage>> {
    let mut ears = VoiceMessages::new(messaging, question, voice, claim);
    let mut messages = Vec::with_capacity(question.new.len());
    for message in &question.new {
        let (kind, text) = match &message.content {
            Content::Text(text) => (MessageKind::Text, text.clone()),
            Content::Audio(file) => (MessageKind::Audio, ears.hear(file).await?),
        };
        messages.push(OutputMessage {
            id: Some(message.id.clone()),
            kind,
            text,
            audio_file_id: None,
            options: None,
        });
    }
    Ok(messages)
}

/// The user's messages and the answer to them.
async fn answered(
    messaging: &Messaging,
    question: &Question,
    messages: Vec<OutputMessage>,
    speaker: &ReplyContext,
    voice: &Voice,
    claim: &Claim,
) -> Result<Output, Failure> {
    if messages
        .iter()
        .all(|message| message.text.trim().is_empty())
    {
        return Err(Failure::NothingHeard);
    }
    let past = question.past.iter();
    let past = past.map(|message| (message.role(), message.text.as_str()));
    let new = messages.iter();
    let new = new.map(|message| (ChatRole::User, message.text.as_str()));
    let ask = ReplyRequest {
        speaker,
        turns: colloquy_generation::turns(past.chain(new)),
        manner: match question.generate_audio {
            true => PromptStyle::VoiceMessage,
            false => PromptStyle::Written,
        },
    };
    let replies = colloquy_generation::variants(messaging, ask, question.num_options).await;
    let replies = replies.map_err(Failure::of_reply)?;
    let replies = replies.iter().map(|reply| reply.trim().to_owned());
    let replies = replies.collect::<Vec<_>>();
    let first = match replies.first() {
        Some(first) if replies.iter().all(|reply| !reply.is_empty()) => first.clone(),
        _ => return Err(Failure::EmptyReply),
    };
    let mut output = Output::new(messages);
    if question.num_options > 1 {
        output.variants(first, replies);
        return Ok(output);
    }
    let mut sound = None;
    if question.generate_audio {
        let recorded = colloquy_speech::record(&messaging.speech, voice, &first, claim).await;
        match recorded.map_err(Failure::Speech)? {
            Recorded::Sound(file) => sound = Some(file),
            Recorded::Silent(_) if !has_words(&first) => return Err(Failure::EmptyReply),
            // A reply in a script that the voice does not read is shown without sound.
            Recorded::Silent(unspoken) => {
                let reason = unspoken.map(|unspoken| unspoken.to_string());
                output.silence = Some(reason.unwrap_or_else(|| UNREAD.to_owned()));
            }
        }
    }
    output.answer(first, sound);
    Ok(output)
}

/// Whether somebody could say something of a reply: nothing of `*smiles*`.
fn has_words(reply: &str) -> bool {
    colloquy_speech::spoken(reply)
        .chars()
        .any(char::is_alphanumeric)
}
