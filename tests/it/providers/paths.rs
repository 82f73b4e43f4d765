//! The paths that a call takes: a reply of a character, and its voice.

use std::{
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use async_trait::async_trait;
use colloquy::{
    App, Config,
    accounts::Tenant,
    characters::{Character, RenderedCharacter},
    generation::{self, PromptStyle, ReplyContext, ReplyRequest},
    providers::{
        self, ChatModel, ChatRequest, ChatRole, ModelAnswer, ModelApi, ModelRequest, ProviderError,
        Providers, embedded::Extractive,
    },
    speech::{self, Voice},
};
use futures_util::TryStreamExt as _;
use harness::{
    TestApp, TestDatabase,
    upstream::{Api, Script, Upstream},
};
use serde_json::json;

use super::{Claim, Priority, collect, samples};

/// The embedded chat model, which notes the thread on which it tells what an answer rests on.
#[derive(Default)]
struct Watched(Mutex<Option<ThreadId>>);

#[async_trait]
impl ChatModel for Watched {
    fn name(&self) -> &str {
        "double/watched"
    }

    fn api(&self) -> ModelApi {
        ModelApi::Chat
    }

    fn tells_passages(&self) -> bool {
        true
    }

    fn passages_of(&self, request: &ChatRequest) -> Option<Vec<usize>> {
        *self.0.lock().unwrap() = Some(thread::current().id());
        Extractive.passages_of(request)
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        Extractive.ask(request).await
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

async fn app(config: Config) -> (App, TestDatabase) {
    let providers = providers::from_config(&config).unwrap();
    app_with(config, providers).await
}

async fn app_with(config: Config, providers: Providers) -> (App, TestDatabase) {
    let database = TestDatabase::sqlite();
    let builder = TestApp::builder(&database)
        .providers(providers)
        .config(|settings| settings.synthesizer = config.synthesizer);
    (builder.idle().await, database)
}

fn guide(rag_enabled: bool) -> (Character, RenderedCharacter) {
    let parameters = json!({
        "name": "Max",
        "language": "English",
        "voice": {"id": "en-gb", "speed": 1.2},
        "rag_enabled": rag_enabled,
        "documents": [
            {"title": "Opening hours", "text": "The zoo opens at nine. It closes at six."},
            {"title": "Lions", "text": "Twelve lions live near the entrance."},
        ],
    });
    let character = Character {
        reference: None,
        personality: "You are Max.".to_owned(),
        parameters: serde_json::from_value(parameters).unwrap(),
    };
    let rendered = RenderedCharacter {
        system: "You are Max.".to_owned(),
        greetings: Vec::new(),
        interruption_message: None,
        patience_message: None,
    };
    (character, rendered)
}

fn speaker(app: &App, character: &Character, rendered: &RenderedCharacter) -> ReplyContext {
    let tenant = Tenant::of_row("acme");
    let documents = app.characters.documents(&tenant, character).unwrap();
    ReplyContext::new(
        &app.generation,
        &tenant,
        character,
        rendered,
        documents,
        Priority::Call,
    )
}

#[tokio::test]
async fn a_character_answers_from_its_documents() {
    let (app, _database) = app(Config::default()).await;
    let (character, rendered) = guide(true);
    let speaker = speaker(&app, &character, &rendered);
    let said = [
        (ChatRole::Assistant, "Hello."),
        (ChatRole::User, "when does the zoo open"),
    ];
    let ask = ReplyRequest {
        speaker: &speaker,
        turns: generation::turns(said),
        manner: PromptStyle::Spoken,
    };
    let reply = generation::reply(&app.generation, ask).await.unwrap();
    let retrieval = reply.retrieval.unwrap();
    assert_eq!(retrieval.documents[0].title, "Opening hours");
    assert!(retrieval.documents[0].fusion_score > 0.0);
    // 40 characters, a quarter of them.
    assert_eq!(retrieval.documents[0].token_count, 10);
    let text: Vec<String> = reply.text.try_collect().await.unwrap();
    assert_eq!(
        text.concat(),
        "According to Opening hours: The zoo opens at nine. It closes at six."
    );
}

#[tokio::test]
async fn a_call_computes_what_a_reply_rests_on_beside_the_runtime() {
    let config = Config::default();
    let watched = Arc::new(Watched::default());
    let providers = Providers {
        chat: watched.clone(),
        ..providers::from_config(&config).unwrap()
    };
    let (app, _database) = app_with(config, providers).await;
    let (character, rendered) = guide(true);
    let ask = ReplyRequest {
        speaker: &speaker(&app, &character, &rendered),
        turns: generation::turns([(ChatRole::User, "when does the zoo open")]),
        manner: PromptStyle::Spoken,
    };
    let reply = generation::reply(&app.generation, ask).await.unwrap();
    let documents = reply.retrieval.unwrap().documents;
    let titles: Vec<_> = documents.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(titles, ["Opening hours"]);
    let told_on = watched.0.lock().unwrap().take();
    assert!(told_on.is_some_and(|thread| thread != thread::current().id()));
}

#[tokio::test]
async fn a_model_gets_the_passages_only_when_knowledge_is_on() {
    let upstream = Upstream::start().await;
    let mut config = Config::default();
    upstream.configure(&mut config);
    let (app, _database) = app(config).await;
    let said = [
        (ChatRole::Assistant, "Welcome."),
        (ChatRole::User, "Where are the lions?"),
    ];
    for rag_enabled in [true, false] {
        let (character, rendered) = guide(rag_enabled);
        let ask = ReplyRequest {
            speaker: &speaker(&app, &character, &rendered),
            turns: generation::turns(said),
            manner: PromptStyle::Spoken,
        };
        let reply = generation::reply(&app.generation, ask).await.unwrap();
        assert_eq!(reply.retrieval.is_some(), rag_enabled);
        drop(reply);
        let body = upstream.requests(Api::Chat).pop().unwrap().body;
        let messages = body["messages"].as_array().unwrap();
        let system = messages[0]["content"].as_str().unwrap();
        assert!(system.starts_with("You are Max.") && system.contains("voice call"));
        assert!(system.ends_with("by saying: Welcome."));
        assert_eq!(system.contains("Twelve lions live near"), rag_enabled);
        assert_eq!(
            messages[1],
            json!({"role": "user", "content": "Where are the lions?"})
        );
    }
}

#[tokio::test]
async fn the_voice_of_a_character_speaks_what_can_be_heard() {
    let upstream = Upstream::start().await;
    let mut config = Config::default();
    upstream.configure(&mut config);
    config.synthesizer.voice = Some("house-voice".to_owned());
    let (app, _database) = app(config).await;
    let (character, _) = guide(false);
    let voice = Voice::of(&character.parameters);
    upstream.set_default(Api::Speech, Script::default());
    let claim = Claim::own(Priority::Call);
    let text = "**Hello** from [us](https://example.org)!";
    let speech = speech::speak(&app.speech, &voice, text, &claim).await;
    let (pieces, failure) = collect(speech).await;
    assert!(failure.is_none() && samples(&pieces) > 0);
    collect(speech::speak(&app.speech, &Voice::default(), "Hi.", &claim).await).await;
    let (nothing, failure) =
        collect(speech::speak(&app.speech, &voice, "🙂 **", &claim).await).await;
    assert!(nothing.is_empty() && failure.is_none());
    let asked = upstream.requests(Api::Speech);
    assert_eq!(asked.len(), 2, "nobody is asked to speak nothing");
    assert_eq!(asked[0].body["input"], "Hello from us!");
    assert_eq!(asked[0].body["voice"], "en-gb");
    assert!((asked[0].body["speed"].as_f64().unwrap() - 1.2).abs() < 0.001);
    assert_eq!(asked[1].body["voice"], "house-voice");
}
