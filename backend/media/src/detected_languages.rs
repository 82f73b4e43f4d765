//! The words of a call in which each utterance is heard in its own language.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use colloquy_base::fair_queue::Claim;
use colloquy_providers::{
    ProviderError, ProviderErrorKind, Transcriber, Utterance, spoken_language,
};
use tokio::time::timeout;

/// The languages of a call that are detected.
#[derive(Debug)]
pub(super) struct DetectedLanguages {
    limit: Duration,
    last: Mutex<Option<String>>,
}

impl DetectedLanguages {
    /// None yet. The words of an utterance take at most `limit`, with its language.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            last: Mutex::default(),
        }
    }

    /// Returns the words of an utterance.
    pub(super) async fn words(
        &self,
        transcriber: &dyn Transcriber,
        samples: Vec<i16>,
        claim: Claim,
    ) -> Result<String, ProviderError> {
        let words = async {
            let language = self.language(transcriber, &samples, &claim).await?;
            let utterance = Utterance::new(samples, language, claim);
            transcriber.transcribe(utterance).await
        };
        let words = timeout(self.limit, words).await;
        words.unwrap_or_else(|_| Err(missed(transcriber)))
    }

    /// Detects the language of an utterance. Where that fails, or takes half of the time, the language detected before is taken, since most
    /// visitors go on in it.
    async fn language(
        &self,
        transcriber: &dyn Transcriber,
        samples: &[i16],
        claim: &Claim,
    ) -> Result<Option<String>, ProviderError> {
        let before = self.last().clone();
        // Without one, the limit of both answers is the one of the first, too.
        let limit = match before {
            Some(_) => self.limit / 2,
            None => self.limit,
        };
        let parts = [samples];
        let detected = timeout(limit, spoken_language(transcriber, &parts, None, claim)).await;
        match (detected, before) {
            (Ok(Ok(language)), _) => {
                if language.is_some() {
                    self.last().clone_from(&language);
                }
                Ok(language)
            }
            (_, Some(before)) => Ok(Some(before)),
            (Ok(Err(error)), None) => Err(error),
            (Err(_), None) => Err(missed(transcriber)),
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<String>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missed(transcriber: &dyn Transcriber) -> ProviderError {
    let kind = ProviderErrorKind::Timeout;
    ProviderError::new(transcriber.name(), kind, "no words in time")
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicBool, Ordering},
    };

    use async_trait::async_trait;
    use colloquy_base::fair_queue::Priority;

    use super::*;

    /// Hears the name of the language that it is told, and hangs where it is to do what it cannot.
    #[derive(Debug, Default)]
    struct Ears {
        detect: AtomicBool,
        transcribe: AtomicBool,
    }

    #[async_trait]
    impl Transcriber for Ears {
        fn name(&self) -> &str {
            "ears"
        }

        async fn language(
            &self,
            _utterance: Utterance,
            _among: Option<&[&str]>,
        ) -> Result<Option<String>, ProviderError> {
            match self.detect.load(Ordering::Relaxed) {
                true => Ok(Some("de".to_owned())),
                false => pending().await,
            }
        }

        async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
            match self.transcribe.load(Ordering::Relaxed) {
                true => Ok(utterance.language.unwrap_or_default()),
                false => pending().await,
            }
        }

        async fn check(&self) -> Result<(), ProviderError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn detection_and_words_have_one_limit_and_a_late_language_is_the_one_before() {
        let ears = Ears::default();
        let languages = DetectedLanguages::new(Duration::from_millis(200));
        let words = async || {
            let claim = Claim::new(Priority::Call, "acme");
            let words = languages.words(&ears, vec![8_000; 1_600], claim).await;
            words.map_err(|error| error.kind)
        };
        ears.transcribe.store(true, Ordering::Relaxed);
        assert_eq!(words().await, Err(ProviderErrorKind::Timeout));
        ears.detect.store(true, Ordering::Relaxed);
        assert_eq!(words().await.as_deref(), Ok("de"));
        ears.detect.store(false, Ordering::Relaxed);
        assert_eq!(words().await.as_deref(), Ok("de"));
        ears.transcribe.store(false, Ordering::Relaxed);
        assert_eq!(words().await, Err(ProviderErrorKind::Timeout));
    }
}
