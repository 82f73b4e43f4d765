//! The programs and models that this machine has and lacks for calls and documents, and the commands that get them. They are logged at the start, since
//! a server starts without them, and as root, too; and they are kept for administrators.

use std::{path::Path, time::Duration};

use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::{
    App,
    bases::ProgramFailure,
    config::{Config, EMBEDDED_MODEL},
    providers::{
        ProviderError, ProviderErrorKind,
        embedded::{ESPEAK, POCKETSPHINX},
    },
    sandbox::child::bounds_processes,
};

/// The time that a program may take to show that it is there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The importance of a program or model that is present or missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EquipmentState {
    /// Something is there.
    Present,
    /// Something could be added.
    Advice,
    /// Something is missing without which the server does less than is expected of it.
    Missing,
}

/// A program or model that the machine has or lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Equipment {
    state: EquipmentState,
    /// A sentence that says what is present or missing, with the command that installs it.
    text: String,
}

/// Logs what is there and what is missing, and keeps it. Programs are started to find out.
pub(super) async fn report(app: App) {
    let found = look(&app).await;
    for Equipment { state, text } in &found {
        match state {
            EquipmentState::Missing => tracing::warn!("{text}"),
            EquipmentState::Present | EquipmentState::Advice => tracing::info!("{text}"),
        }
    }
    // Only this task sets it.
    let _ = app.equipment.set(found);
}

async fn look(app: &App) -> Vec<Equipment> {
    let mut found = Vec::new();
    let mut tell = |state, text: String| found.push(Equipment { state, text });
    let providers = &app.providers;
    let config = &app.config;
    let models = config.inference.models_folder(&config.store.dir);
    if let Some(lack) = process_lack(bounds_processes()) {
        tell(EquipmentState::Missing, lack.to_owned());
    }
    // A neural voice gets its phonemes from espeak-ng; a service elsewhere is not asked.
    if config.synthesizer.base_url.is_none() {
        let checked = timeout(PATIENCE, providers.synthesizer.check()).await;
        if let Some(lack) = speech_lack(checked.unwrap_or(Ok(())), &models) {
            tell(EquipmentState::Missing, lack);
        }
    }
    if providers.transcriber.name() == POCKETSPHINX {
        let checked = timeout(PATIENCE, providers.transcriber.check()).await;
        match hearing_lack(checked.unwrap_or(Ok(())), &models) {
            Ok(advice) => tell(EquipmentState::Advice, advice),
            Err(lack) => tell(EquipmentState::Missing, lack),
        }
    }
    if providers.chat.name() == EMBEDDED_MODEL {
        let advice = format!(
            "calls are answered by {EMBEDDED_MODEL}, which says what stands in a character's own text and documents; COLLOQUY_CHAT_BASE_URL and \
             COLLOQUY_CHAT_MODEL name a model"
        );
        tell(EquipmentState::Advice, advice);
    }
    let here = Here {
        embedder: providers.embedder.as_ref().map(|it| it.name()),
        synthesizer: providers.synthesizer.name(),
        voice_worker: providers.voice_worker.as_ref().map(|it| it.name()),
    };
    for lack in here.model_lacks(config, &models) {
        tell(EquipmentState::Advice, lack);
    }
    match app.bases.ocr().await {
        Ok(_) => {
            let languages = config.knowledge.ocr_languages.join(", ");
            let text = format!("scanned documents are read by tesseract ({languages})");
            tell(EquipmentState::Present, text);
        }
        Err(reason) => tell(
            EquipmentState::Advice,
            format!(
                "scanned documents are not read: {reason}; `apt-get install tesseract-ocr`, and a package such as `tesseract-ocr-deu` for each \
                 further language of knowledge.ocr_languages"
            ),
        ),
    }
    match app.bases.check_videos().await {
        Ok(version) => {
            let text = format!("videos of platforms are read by yt-dlp {version}");
            tell(EquipmentState::Present, text);
        }
        Err(ProgramFailure::NotInstalled) => tell(
            EquipmentState::Advice,
            "videos of platforms are not read: the program yt-dlp is not installed; `pipx install yt-dlp` gets the newest one".to_owned(),
        ),
        Err(failure) => tell(
            EquipmentState::Missing,
            format!("videos of platforms are not read: {failure}; `pipx upgrade yt-dlp` gets the newest one"),
        ),
    }
    found
}

/// Returns what is missing where processes of helper programs are not bounded.
fn process_lack(is_bounded: bool) -> Option<&'static str> {
    let lack = "the server runs as root, whose processes the system does not count: a helper program that is taken over can use up all process ids \
                of this machine. Run the server as a user of its own";
    (!is_bounded).then_some(lack)
}

/// Returns why no character can speak.
fn speech_lack(checked: Result<(), ProviderError>, models: &Path) -> Option<String> {
    let reason = not_there(checked)?;
    Some(format!(
        "calls are MUTE: {reason}. {ESPEAK} speaks by itself, and says to the voices in {} how words sound. Run `apt-get install \
         {ESPEAK}`, and for a neural voice `colloquy models pull piper-en_US-joe-medium`; or name a service with \
         COLLOQUY_SYNTHESIZER_BASE_URL",
        models.display()
    ))
}

/// Returns why no visitor is understood, or else how they would be understood better.
fn hearing_lack(checked: Result<(), ProviderError>, models: &Path) -> Result<String, String> {
    let folder = models.display();
    let Some(reason) = not_there(checked) else {
        return Ok(format!(
            "no Whisper model is in {folder}, so visitors are understood by PocketSphinx, in English and not well; `colloquy models pull` \
             gets one (77 MB)"
        ));
    };
    Err(format!(
        "calls are DEAF: no Whisper model is in {folder}, and {reason}. Run `colloquy models pull` (English, 77 MB; `colloquy models list` \
         has those of other languages) and start again, or `apt-get install pocketsphinx pocketsphinx-en-us`; or name a service with \
         COLLOQUY_TRANSCRIBER_BASE_URL"
    ))
}

/// The providers that serve search by meaning and voices, by name.
#[derive(Debug, Clone, Copy)]
struct Here<'a> {
    embedder: Option<&'a str>,
    synthesizer: &'a str,
    voice_worker: Option<&'a str>,
}

impl Here<'_> {
    /// Returns which models are missing for search by meaning, for a neural voice and for the voice library. A setting that does without a
    /// model, such as `embedder.model = "none"`, lacks nothing.
    fn model_lacks(self, config: &Config, models: &Path) -> Vec<String> {
        let folder = models.display();
        let mut lacks = Vec::new();
        if self.embedder.is_none() && config.embedder.model.is_none() {
            lacks.push(format!(
                "no embedding model is in {folder}, so documents are found by their words alone and `POST /v3/embeddings` is refused; \
                 `colloquy models pull all-minilm-l6-v2` gets one for English; or name a service with COLLOQUY_EMBEDDER_BASE_URL"
            ));
        }
        if self.synthesizer == ESPEAK && config.synthesizer.model.is_none() {
            lacks.push(format!(
                "no neural voice is in {folder}, so {ESPEAK} is the only one; `colloquy models pull piper-en_US-joe-medium` gets one \
                 (63 MB; `colloquy models list` has others)"
            ));
        }
        if self.voice_worker.is_none() {
            lacks.push(format!(
                "the model ge2e is not in {folder}, so no voices are made of recordings; `colloquy models pull ge2e` gets it (17 MB); or \
                 name a service with COLLOQUY_VOICE_WORKER_BASE_URL"
            ));
        }
        lacks
    }
}

/// Returns the reason of a check that failed for good.
fn not_there(checked: Result<(), ProviderError>) -> Option<String> {
    let error = checked.err()?;
    // One that is only busy is there.
    let is_final =
        error.kind == ProviderErrorKind::Misconfigured || error.kind == ProviderErrorKind::Failed;
    is_final.then_some(error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Result<(), ProviderError> {
        let message = "the program x is not installed";
        Err(ProviderError::new(
            "x",
            ProviderErrorKind::Misconfigured,
            message,
        ))
    }

    #[test]
    fn what_is_missing_is_told_with_the_commands_that_get_it() {
        let models = Path::new("/srv/models");
        let mute = speech_lack(missing(), models).unwrap();
        assert!(
            mute.contains("MUTE: the program x is not installed. "),
            "{mute}"
        );
        assert!(mute.contains("`apt-get install espeak-ng`"), "{mute}");
        assert!(
            mute.contains("`colloquy models pull piper-en_US-joe-medium`"),
            "{mute}"
        );
        assert_eq!(speech_lack(Ok(()), models), None);
        let busy = ProviderError::new("x", ProviderErrorKind::Busy, "busy");
        assert_eq!(speech_lack(Err(busy), models), None);

        let deaf = hearing_lack(missing(), models).unwrap_err();
        assert!(
            deaf.contains("/srv/models") && deaf.contains("`colloquy models pull`"),
            "{deaf}"
        );
        assert!(
            hearing_lack(Ok(()), models)
                .unwrap()
                .contains("`colloquy models pull`")
        );
    }

    #[test]
    fn a_server_of_root_is_told_to_run_as_another_user() {
        let lack = process_lack(false).unwrap();
        assert!(
            lack.contains("runs as root") && lack.contains("a user of its own"),
            "{lack}"
        );
        assert_eq!(process_lack(true), None);
    }

    #[test]
    fn missing_models_are_told_unless_the_settings_do_without() {
        let models = Path::new("/srv/models");
        let nothing = Here {
            embedder: None,
            synthesizer: ESPEAK,
            voice_worker: None,
        };
        let mut config = Config::default();
        let lacks = nothing.model_lacks(&config, models);
        let names = ["all-minilm-l6-v2", "piper-en_US-joe-medium", "ge2e"];
        assert_eq!(lacks.len(), names.len(), "{lacks:?}");
        for (lack, name) in lacks.iter().zip(names) {
            assert!(
                lack.contains(&format!("`colloquy models pull {name}`")),
                "{lack}"
            );
            assert!(lack.contains("/srv/models"), "{lack}");
        }
        let all = Here {
            embedder: Some("all-minilm-l6-v2"),
            synthesizer: "piper-en_US-joe-medium",
            voice_worker: Some("ge2e"),
        };
        assert_eq!(all.model_lacks(&config, models), Vec::<String>::new());
        config.embedder.model = Some("none".to_owned());
        config.synthesizer.model = Some(ESPEAK.to_owned());
        let lacks = nothing.model_lacks(&config, models);
        assert_eq!(lacks.len(), 1, "{lacks:?}");
        assert!(lacks[0].contains("ge2e"), "{lacks:?}");
    }
}
