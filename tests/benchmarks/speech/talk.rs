//! Calls with a server that has nothing but its defaults.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use harness::client::{NativeClient, Speech};

use super::SpeechOptions;
use crate::{
    figures::{megabytes, percentile, rounded},
    server::{Server, Start},
};

/// A turn without a reply for so long is missed.
const PATIENCE: Duration = Duration::from_secs(8);

/// Nothing audible for so long means that a reply is over.
const OVER: Duration = Duration::from_millis(800);

/// What the calls measured.
pub(super) struct CallFigures {
    pub(super) v2v_p50_ms: Option<f64>,
    pub(super) missed: usize,
    pub(super) rss_mb: f64,
}

/// Lets so many visitors talk at once, with neural models or without.
pub(super) async fn talk(
    options: &SpeechOptions,
    said: &[Speech],
    calls: usize,
    without_models: bool,
) -> anyhow::Result<CallFigures> {
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut settings = vec![setting("COLLOQUY_CALLS_TURN_STOP_MS", "200")];
    if without_models {
        settings.push(setting("COLLOQUY_TRANSCRIBER_MODEL", "pocketsphinx"));
        settings.push(setting("COLLOQUY_SYNTHESIZER_MODEL", "espeak-ng"));
    } else {
        let models = options.models.to_str().context("the folder's name")?;
        settings.push(setting("COLLOQUY_MODELS_DIR", models));
        if let Some(model) = &options.transcriber {
            settings.push(setting("COLLOQUY_TRANSCRIBER_MODEL", model));
        }
    }
    let server = Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        settings,
        ..Start::default()
    })
    .await?;
    server.create_guide().await?;
    // The first visitor pays for what is paid once.
    visit(&server.create_call().await?, said, 0, 1).await?;
    let mut urls = Vec::new();
    for _ in 0..calls {
        urls.push(server.create_call().await?);
    }
    let visits = urls.iter().zip(0_u32..).map(|(url, index)| async move {
        tokio::time::sleep(Duration::from_millis(700) * index).await;
        visit(url, said, index as usize, options.turns).await
    });
    let visits = try_join_all(visits).await?;
    let rss_mb = rounded(megabytes(server.resident_bytes()?), 10.0);
    server.stop().await?;
    let missed = visits
        .iter()
        .flatten()
        .filter(|turn| turn.is_none())
        .count();
    let mut answered: Vec<Duration> = visits.into_iter().flatten().flatten().collect();
    answered.sort();
    Ok(CallFigures {
        v2v_p50_ms: percentile(&answered, 50),
        missed,
        rss_mb,
    })
}

/// Says one recording after the other, from another one on than the other visitors; how long each reply took, `None` where there was none.
async fn visit(
    url: &str,
    said: &[Speech],
    visitor: usize,
    turns: usize,
) -> anyhow::Result<Vec<Option<Duration>>> {
    let client = NativeClient::connect(url).await?;
    tokio::time::sleep(OVER).await;
    let mut answered = Vec::new();
    for turn in 0..turns {
        client.silence(OVER, 4 * PATIENCE).await?;
        // Not in step with those of others.
        let pause = Duration::from_millis(137 * turn as u64 % 400);
        tokio::time::sleep(pause).await;
        let speech = said.get((visitor * turns + turn) % said.len().max(1));
        let spoken = client.speak(speech.context("nothing to say")?).await?;
        let reply = client.reply_audio(spoken.ended, PATIENCE).await;
        answered.push(reply.map(|first| first.at.duration_since(spoken.ended)));
    }
    client.silence(OVER, 4 * PATIENCE).await?;
    client.hang_up().await?;
    Ok(answered)
}
