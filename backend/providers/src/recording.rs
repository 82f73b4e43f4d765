//! The language that is spoken in a recording.

use colloquy_audio::pauses::is_silent;
use colloquy_base::fair_queue::Claim;

use crate::{ProviderError, Transcriber, Utterance};

/// How many parts tell the language.
const PARTS: usize = 3;

/// The language that most of the first parts are in, a BCP 47 tag: one of `among`, or any. `None` where nobody speaks, and where the transcriber
/// hears utterances of any language by itself, or only of one.
///
/// # Errors
/// When the transcriber fails.
pub async fn spoken_language(
    transcriber: &dyn Transcriber,
    parts: &[&[i16]],
    among: Option<&[&str]>,
    claim: &Claim,
) -> Result<Option<String>, ProviderError> {
    let spoken = parts.iter().filter(|samples| !is_silent(samples));
    let mut told: Vec<String> = Vec::new();
    for samples in spoken.take(PARTS) {
        let utterance = Utterance::new(*samples, None, claim.clone());
        match transcriber.language(utterance, among).await? {
            Some(language) => told.push(language),
            None => break,
        }
    }
    let votes = |language: &String| told.iter().filter(|other| *other == language).count();
    // Of those with as many, the first one.
    let most = told.iter().rev().max_by_key(|language| votes(language));
    Ok(most.cloned())
}
