//! What is told of a question that is taken. What is refused, `backend/messaging/tests/contract` says.

use super::*;

async fn app() -> (TestApp, TestPartner) {
    let app = TestApp::builder(&TestDatabase::sqlite()).without_worker();
    let app = app.start().await;
    let (acme, _) = app.acme_and_other().await;
    (app, acme)
}

fn hello() -> Value {
    json!([written("m1", "Hello")])
}

#[tokio::test]
async fn a_knowledge_base_that_is_not_there_is_told() {
    let (app, acme) = app().await;
    let with = |parameters: Value| {
        let description = parameters.to_string();
        let character = json!({"description": description, "personality": "You are Ada."});
        question(hello(), json!({"character": character}))
    };
    for base in ["acme/none", "other/none"] {
        let named = with(json!({"rag_enabled": true, "rag_index_required": base}));
        let answer = app.post(&acme.key, PATH, named).await;
        answer.expect(200);
        let expected = format!("the knowledge base {base} of rag_index_required is not found");
        assert_eq!(answer.header("x-colloquy-warning"), expected);
        assert!(answer.header("deprecation").starts_with('@'));
    }
    let unused = with(json!({"rag_index_required": "acme/none"}));
    let answer = app.post(&acme.key, PATH, unused).await;
    answer.expect(200);
    assert_eq!(answer.header("x-colloquy-warning"), "");
}
