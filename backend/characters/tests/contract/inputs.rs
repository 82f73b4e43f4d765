//! Characters and parameters as requests write them.

use colloquy_characters::parse_character_params;

use super::*;

#[test]
fn malformed_inputs_are_invalid_characters() {
    for (input, field) in [
        (json!(7), "character"),
        (json!(null), "character"),
        (json!(""), "character"),
        (json!("guide"), "character"),
        (json!("repo:acme"), "character"),
        (json!("repo:Acme/guide"), "character"),
        (json!("repo:acme/a/b"), "character"),
        (json!("{broken"), "character"),
        (json!({}), "character.personality"),
        (json!({"personality": 1}), "character.personality"),
        (
            json!({"personality": "x", "parameters": {"greetings": [1]}}),
            "character.parameters.greetings[0]",
        ),
        (
            json!({"personality": "x", "description": "{"}),
            "character.description",
        ),
        (
            json!({"personality": "x", "description": "{}", "parameters": {}}),
            "character.description",
        ),
        (json!({"personality": "x", "tools": []}), "character.tools"),
        (json!({"personality": "{{ x"}), "character.personality"),
    ] {
        let error = ApiError::from(CharacterInput::parse(&input).unwrap_err());
        assert_eq!(
            (error.status.as_u16(), error.code),
            (400, "invalid_character"),
            "{input}"
        );
        assert_eq!(error.field.as_deref(), Some(field), "{input}");
    }
}

#[test]
fn template_parameters_are_flat() {
    let parse = |value: Value| parse_character_params(Some(&value));
    let flat = json!({"a": "x", "b": 1.5, "c": true, "d": null});
    assert_eq!(Value::Object(parse(flat.clone()).unwrap()), flat);
    assert_eq!(Value::Object(parse(json!(flat.to_string())).unwrap()), flat);
    assert!(parse_character_params(None).unwrap().is_empty());
    assert!(parse(json!("")).unwrap().is_empty());
    for (value, field) in [
        (json!({"a": [1]}), "character_params.a"),
        (json!({"a": {}}), "character_params.a"),
        (json!({"context": "x"}), "character_params.context"),
        (json!("[1]"), "character_params"),
        (json!([1]), "character_params"),
        (json!({"a": "x".repeat(40_000)}), "character_params.a"),
    ] {
        assert_eq!(parse(value.clone()).unwrap_err().field, field, "{value}");
    }
}
