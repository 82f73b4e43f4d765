use serde_json::json;

use super::*;
use crate::characters::CharacterParameters;

fn character(personality: &str, parameters: Json) -> Character {
    let parameters: CharacterParameters = serde_json::from_value(parameters).unwrap();
    Character {
        reference: None,
        personality: personality.to_owned(),
        parameters,
    }
}

fn render_with(
    personality: &str,
    parameters: Json,
    params: Json,
) -> Result<RenderedCharacter, ApiError> {
    let Json::Object(params) = params else {
        panic!("params are an object")
    };
    render(&character(personality, parameters), &params)
}

#[test]
fn parameters_of_the_request_win() {
    let rendered = render_with(
        "You are {{ robot_name }}, {{ age }}, {{ mood }}. {{ none_at_all }}|{{ live }}",
        json!({"robot_name": "Ada", "mood": "calm", "age": 36, "none_at_all": null}),
        json!({"mood": "cheerful", "live": true}),
    )
    .unwrap();
    assert_eq!(rendered.system, "You are Ada, 36, cheerful. |true");
}

#[test]
fn lists_and_nested_values_can_be_used() {
    let rendered = render_with(
        "{% for q in easy_questions %}- {{ q }}\n{% endfor %}{{ shop.city|upper }}{% if vip is defined %}!{% endif %}\
         {{ title|default('none') }}{{ greetings|length }}",
        json!({"easy_questions": ["Where?", "When?"], "shop": {"city": "Delft"}}),
        json!({}),
    )
    .unwrap();
    assert_eq!(rendered.system, "- Where?\n- When?\nDELFTnone0");
}

#[test]
fn prefix_greetings_and_interruption_are_templates_too() {
    let rendered = render_with(
        "P",
        json!({
            "robot_name": "Ada",
            "greetings": ["Hi {{ guest }}", "I am {{ robot_name }} <b>"],
            "interruption_message": "Sorry, {{ guest }}?",
            "conversation_prefix": "Talk to {{ guest }}",
        }),
        json!({"guest": "Bo"}),
    )
    .unwrap();
    assert_eq!(rendered.system, "P\n\nTalk to Bo");
    assert_eq!(rendered.greetings, ["Hi Bo", "I am Ada <b>"]);
    assert_eq!(rendered.interruption_message.as_deref(), Some("Sorry, Bo?"));
}

#[test]
fn values_are_not_templates() {
    let rendered = render_with("{{ a }}", json!({}), json!({"a": "{{ b }}"})).unwrap();
    assert_eq!(rendered.system, "{{ b }}");
}

#[test]
fn an_unknown_placeholder_is_named() {
    for personality in [
        "Hello {{ visitor }}",
        "{% if visitor %}x{% endif %}",
        "{{ visitor.name }}",
    ] {
        let error = render_with(personality, json!({}), json!({})).unwrap_err();
        assert_eq!(error.status.as_u16(), 400, "{personality}");
        assert_eq!(
            error.field.as_deref(),
            Some("character_params.visitor"),
            "{personality}"
        );
        assert!(error.message.contains("visitor"), "{}", error.message);
    }
    let error = render_with(
        "{{ shop.street }}",
        json!({"shop": {"city": "Delft"}}),
        json!({}),
    )
    .unwrap_err();
    assert_eq!(error.field.as_deref(), Some("personality"));
}

#[test]
fn context_and_nested_params_are_refused() {
    let error = render_with("x", json!({}), json!({"context": "y"})).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("character_params.context"));
    for value in [json!(["a"]), json!({"b": 1})] {
        let error = render_with("x", json!({}), json!({"list": value})).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("character_params.list"));
    }
}

#[test]
fn costly_templates_are_refused() {
    let many: Vec<u32> = (0..100).collect();
    let parameters = json!({"easy_questions": many, "text": "x".repeat(30_000)});
    let slow = "{% for a in easy_questions %}{% for b in easy_questions %}{% for c in easy_questions %}{{ c }}\
                {% endfor %}{% endfor %}{% endfor %}";
    let error = render_with(slow, parameters.clone(), json!({})).unwrap_err();
    assert_eq!(error.message, "the template takes too long");
    let large = "{% for a in easy_questions %}{{ text }}{% endfor %}";
    let error = render_with(large, parameters, json!({})).unwrap_err();
    assert_eq!(error.message, "the template's result is too large");
}

#[test]
fn tags_and_operators_that_grow_text_are_refused() {
    for personality in [
        "{% set x = 'aa' %}{{ x }}",
        "{% set x %}aa{% endset %}",
        "{% include 'other' %}",
        "{% import 'other' as o %}",
        "{% extends 'other' %}",
        "{% macro m() %}{% endmacro %}",
        "{% filter upper %}x{% endfilter %}",
        "{%- with a = 1 -%}{%- endwith -%}",
        "{% raw %}x{% endraw %}{% set y = 1 %}",
        "{{ 'a' ~ 'b' }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 'a' + 'b' }}",
        "{% for a in b recursive %}{{ loop(a) }}{% endfor %}",
        "{{ range(10) }}",
        "{{ 'x'|indent(1000000) }}",
        "{{ ",
        "{% if %}",
        "{% for x in y %}",
    ] {
        let checked = check_syntax(&character(personality, json!({})));
        let rendered = render_with(personality, json!({"b": [], "y": []}), json!({}));
        assert!(rendered.is_err(), "{personality} was rendered");
        assert_eq!(rendered.unwrap_err().status.as_u16(), 400, "{personality}");
        // Unknown functions and filters are found when they are used.
        if !personality.contains("range") && !personality.contains("indent") {
            assert_eq!(
                checked.unwrap_err().field.as_deref(),
                Some("personality"),
                "{personality}"
            );
        }
    }
}
