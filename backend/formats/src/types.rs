//! The types and ranges of the fields of both APIs, as tables. They are checked here, so that a mistake gets the same answer
//! whichever model is asked; what is not named here passes, and null counts as not given.

use colloquy_base::json::integer;
use serde_json::Value;

use super::{FormatError, Object};

/// What a value has to be.
pub(super) enum Kind {
    /// Whatever it is.
    Any,
    /// A string.
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A boolean.
    Bool,
    /// A number, from and to.
    Number(f64, f64),
    /// An integer, from and to.
    Integer(i64, i64),
    /// An array of so many at most.
    List(&'static Kind, usize),
    /// An object, all of whose values are alike.
    Map(&'static Kind),
    /// An object with these fields.
    Fields(&'static [Field]),
    /// An object with a `type`; a type that stands here has these fields.
    Typed(&'static [(&'static str, &'static [Field])]),
    /// The first of these that the value could be.
    Or(&'static [Kind]),
}

/// A field of an object.
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    required: bool,
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        required: false,
    }
}

const fn required(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        required: true,
    }
}

use Kind::{Any, Bool, Fields, Integer, List, Map, Number, Or, Text, Typed, Word};

/// An object whose fields are its own business.
const OBJECT: Kind = Fields(&[]);
const TEXTS: Kind = List(&Text, usize::MAX);
const ANY_LIST: Kind = List(&Any, usize::MAX);
const ANY_INTEGER: Kind = Integer(i64::MIN, i64::MAX);
const VERBOSITY: Kind = Word(&["low", "medium", "high"]);

/// The fields of a chat completion's body that are nothing but checked.
pub(super) const CHAT: &[Field] = &[
    field("temperature", Number(0.0, 2.0)),
    field("top_p", Number(0.0, 1.0)),
    field("frequency_penalty", Number(-2.0, 2.0)),
    field("presence_penalty", Number(-2.0, 2.0)),
    field("seed", ANY_INTEGER),
    field("stop", Or(&[Text, List(&Text, 4)])),
    field("logit_bias", Map(&Number(-100.0, 100.0))),
    field("logprobs", Bool),
    field("top_logprobs", Integer(0, 20)),
    field("tools", List(&CHAT_TOOL, usize::MAX)),
    field(
        "tool_choice",
        Or(&[TOOL_CHOICE_WORD, Typed(CHAT_TOOL_CHOICE)]),
    ),
    field("parallel_tool_calls", Bool),
    field("functions", List(&Fields(FUNCTION), usize::MAX)),
    field(
        "function_call",
        Or(&[Word(&["none", "auto"]), Fields(&[required("name", Text)])]),
    ),
    field("response_format", RESPONSE_FORMAT),
    field("modalities", List(&Word(&["text", "audio"]), 2)),
    field(
        "audio",
        Fields(&[
            required("voice", Or(&[Text, OBJECT])),
            required("format", Text),
        ]),
    ),
    field(
        "prediction",
        Typed(&[("content", &[required("content", Or(&[Text, ANY_LIST]))])]),
    ),
    field(
        "stream_options",
        Fields(&[
            field("include_usage", Bool),
            field("include_obfuscation", Bool),
        ]),
    ),
    field("store", Bool),
    field("user", Text),
    field("safety_identifier", Text),
    field("prompt_cache_key", Text),
    field("prompt_cache_retention", Text),
    field("service_tier", Text),
    field("verbosity", VERBOSITY),
    field("web_search_options", OBJECT),
];

/// The fields of a response's body that are nothing but checked.
pub(super) const RESPONSES: &[Field] = &[
    field("instructions", Text),
    field("temperature", Number(0.0, 2.0)),
    field("top_p", Number(0.0, 1.0)),
    field("top_logprobs", Integer(0, 20)),
    field("tools", List(&RESPONSES_TOOL, usize::MAX)),
    field(
        "tool_choice",
        Or(&[TOOL_CHOICE_WORD, Typed(RESPONSES_TOOL_CHOICE)]),
    ),
    field("parallel_tool_calls", Bool),
    field("max_tool_calls", Integer(1, i64::MAX)),
    field(
        "text",
        Fields(&[field("format", TEXT_FORMAT), field("verbosity", VERBOSITY)]),
    ),
    field(
        "reasoning",
        Fields(&[field("summary", Text), field("generate_summary", Text)]),
    ),
    field("include", TEXTS),
    field("truncation", Word(&["auto", "disabled"])),
    field(
        "stream_options",
        Fields(&[field("include_obfuscation", Bool)]),
    ),
    field(
        "prompt",
        Fields(&[
            required("id", Text),
            field("version", Text),
            field("variables", OBJECT),
        ]),
    ),
    field("user", Text),
    field("safety_identifier", Text),
    field("prompt_cache_key", Text),
    field("prompt_cache_retention", Text),
    field("service_tier", Text),
];

const FUNCTION: &[Field] = &[
    required("name", Text),
    field("description", Text),
    field("parameters", OBJECT),
    field("strict", Bool),
];

const CUSTOM: &[Field] = &[
    required("name", Text),
    field("description", Text),
    field("format", OBJECT),
];

const CHAT_TOOL: Kind = Typed(&[
    ("function", &[required("function", Fields(FUNCTION))]),
    ("custom", &[required("custom", Fields(CUSTOM))]),
]);

const RESPONSES_TOOL: Kind = Typed(&[("function", FUNCTION), ("custom", CUSTOM)]);

const TOOL_CHOICE_WORD: Kind = Word(&["none", "auto", "required"]);

const NAMED: &[Field] = &[required("name", Text)];

const ALLOWED_TOOLS: &[Field] = &[
    required("mode", Word(&["auto", "required"])),
    required("tools", List(&OBJECT, usize::MAX)),
];

const CHAT_TOOL_CHOICE: &[(&str, &[Field])] = &[
    ("function", &[required("function", Fields(NAMED))]),
    ("custom", &[required("custom", Fields(NAMED))]),
    (
        "allowed_tools",
        &[required("allowed_tools", Fields(ALLOWED_TOOLS))],
    ),
];

const RESPONSES_TOOL_CHOICE: &[(&str, &[Field])] = &[
    ("function", NAMED),
    ("custom", NAMED),
    (
        "mcp",
        &[required("server_label", Text), field("name", Text)],
    ),
    ("allowed_tools", ALLOWED_TOOLS),
];

const JSON_SCHEMA: &[Field] = &[
    required("name", Text),
    field("description", Text),
    field("schema", OBJECT),
    field("strict", Bool),
];

const RESPONSE_FORMAT: Kind = Typed(&[(
    "json_schema",
    &[required("json_schema", Fields(JSON_SCHEMA))],
)]);

const TEXT_FORMAT: Kind = Typed(&[(
    "json_schema",
    &[
        required("name", Text),
        field("description", Text),
        required("schema", OBJECT),
        field("strict", Bool),
    ],
)]);

/// The fields of a message, besides `role` and `content`.
pub(super) const MESSAGE: &[Field] = &[
    field("name", Text),
    field("refusal", Text),
    field("tool_call_id", Text),
    field("tool_calls", List(&TOOL_CALL, usize::MAX)),
    field("function_call", Fields(CALLED)),
    field("audio", Fields(&[required("id", Text)])),
];

const CALLED: &[Field] = &[required("name", Text), required("arguments", Text)];

const TOOL_CALL: Kind = Fields(&[
    field("id", Text),
    field("type", Text),
    field("function", Fields(CALLED)),
    field(
        "custom",
        Fields(&[required("name", Text), required("input", Text)]),
    ),
]);

const SOUND: Kind = Fields(&[required("data", Text), required("format", Text)]);

/// The content of a message.
pub(super) const CONTENT: Kind = Or(&[Text, List(&PART, usize::MAX)]);

const PART: Kind = Typed(&[
    ("text", &[required("text", Text)]),
    ("refusal", &[required("refusal", Text)]),
    (
        "image_url",
        &[required(
            "image_url",
            Fields(&[required("url", Text), field("detail", Text)]),
        )],
    ),
    ("input_audio", &[required("input_audio", SOUND)]),
    (
        "file",
        &[required(
            "file",
            Fields(&[
                field("file_id", Text),
                field("file_data", Text),
                field("filename", Text),
            ]),
        )],
    ),
]);

/// The content of an item that is a message.
pub(super) const ITEM_CONTENT: Kind = Or(&[Text, List(&ITEM_PART, usize::MAX)]);

const ITEM_PART: Kind = Typed(&[
    ("input_text", &[required("text", Text)]),
    (
        "output_text",
        &[
            required("text", Text),
            field("annotations", ANY_LIST),
            field("logprobs", ANY_LIST),
        ],
    ),
    ("refusal", &[required("refusal", Text)]),
    (
        "input_image",
        &[
            field("image_url", Text),
            field("file_id", Text),
            field("detail", Text),
        ],
    ),
    (
        "input_file",
        &[
            field("file_id", Text),
            field("file_url", Text),
            field("file_data", Text),
            field("filename", Text),
        ],
    ),
    ("input_audio", &[required("input_audio", SOUND)]),
]);

/// An item that is no message.
pub(super) const ITEM: Kind = Typed(&[
    (
        "function_call",
        &[
            field("id", Text),
            required("call_id", Text),
            required("name", Text),
            required("arguments", Text),
            field("status", Text),
        ],
    ),
    (
        "function_call_output",
        &[
            field("id", Text),
            required("call_id", Text),
            required("output", Or(&[Text, List(&ITEM_PART, usize::MAX)])),
            field("status", Text),
        ],
    ),
    (
        "custom_tool_call",
        &[
            required("call_id", Text),
            required("name", Text),
            required("input", Text),
        ],
    ),
    (
        "custom_tool_call_output",
        &[
            required("call_id", Text),
            required("output", Or(&[Text, List(&ITEM_PART, usize::MAX)])),
        ],
    ),
    (
        "reasoning",
        &[
            field("id", Text),
            field("summary", List(&Typed(&[]), usize::MAX)),
            field("content", List(&Typed(&[]), usize::MAX)),
            field("encrypted_content", Text),
            field("status", Text),
        ],
    ),
    ("item_reference", &[required("id", Text)]),
    (
        "compaction",
        &[field("id", Text), required("encrypted_content", Text)],
    ),
]);

/// Checks the fields of an object.
pub(super) fn check(object: &Object, fields: &[Field]) -> Result<(), FormatError> {
    for Field {
        name,
        kind,
        required,
    } in fields
    {
        match object.get(*name).filter(|value| !value.is_null()) {
            Some(value) => kind.check(value).map_err(|error| error.within(name))?,
            None if *required => return Err(FormatError::new(*name, "is required")),
            None => {}
        }
    }
    Ok(())
}

/// Writes whole numbers with an exponent or a fraction, such as `1e3` and `2.0`, as integers, which models take for integers alone: those of
/// fields that need not be integers stay. Fields that are not known may be integers of a model's own.
pub(super) fn write_integers(object: &mut Object, fields: &[Field]) {
    for (name, value) in object {
        let field = fields.iter().find(|field| field.name == name.as_str());
        match (field.map(|field| &field.kind), value) {
            (Some(Number(..)), _) => {}
            (Some(Map(_)), Value::Object(entries)) => {
                entries.values_mut().for_each(write_integer);
            }
            (_, value) => write_integer(value),
        }
    }
}

fn write_integer(value: &mut Value) {
    if let Some(number) = integer(value) {
        *value = number.into();
    }
}

impl Kind {
    /// Checks a value. The error's field is what is wrong inside of it, empty for the value itself.
    pub(super) fn check(&self, value: &Value) -> Result<(), FormatError> {
        match (self, value) {
            (Any, _) | (Text, Value::String(_)) | (Bool, Value::Bool(_)) => Ok(()),
            (Word(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(()),
            (Number(least, most), Value::Number(number))
                if number
                    .as_f64()
                    .is_some_and(|number| (*least..=*most).contains(&number)) =>
            {
                Ok(())
            }
            (Integer(least, most), Value::Number(_))
                if integer(value).is_some_and(|number| (*least..=*most).contains(&number)) =>
            {
                Ok(())
            }
            (List(kind, most), Value::Array(values)) if values.len() <= *most => {
                for (index, value) in values.iter().enumerate() {
                    kind.check(value)
                        .map_err(|error| error.within(format_args!("[{index}]")))?;
                }
                Ok(())
            }
            (Map(kind), Value::Object(object)) => {
                for (name, value) in object {
                    kind.check(value).map_err(|error| error.within(name))?;
                }
                Ok(())
            }
            (Fields(fields), Value::Object(object)) => check(object, fields),
            (Typed(kinds), Value::Object(object)) => {
                check(object, &[required("type", Text)])?;
                let of_type = kinds
                    .iter()
                    .find(|(name, _)| object.get("type").is_some_and(|kind| kind == name));
                match of_type {
                    Some((_, fields)) => check(object, fields),
                    None => Ok(()),
                }
            }
            (Or(kinds), value) => match kinds.iter().find(|kind| kind.could_be(value)) {
                Some(kind) => kind.check(value),
                None => Err(FormatError::new("", self.expected())),
            },
            _ => Err(FormatError::new("", self.expected())),
        }
    }

    /// Whether the value is of the JSON type that this is.
    fn could_be(&self, value: &Value) -> bool {
        match self {
            Any => true,
            Text | Word(_) => value.is_string(),
            Bool => value.is_boolean(),
            Number(..) | Integer(..) => value.is_number(),
            List(..) => value.is_array(),
            Map(_) | Fields(_) | Typed(_) => value.is_object(),
            Or(kinds) => kinds.iter().any(|kind| kind.could_be(value)),
        }
    }

    /// What the value has to be, for the message.
    fn expected(&self) -> String {
        let what = match self {
            Or(kinds) => {
                let kinds = kinds.iter().map(Self::name).collect::<Vec<_>>();
                kinds.join(" or ")
            }
            kind => kind.name(),
        };
        format!("must be {what}")
    }

    fn name(&self) -> String {
        match self {
            Any => "a value".to_owned(),
            Text => "a string".to_owned(),
            Word(words) => format!("one of {}", words.join(", ")),
            Bool => "a boolean".to_owned(),
            Number(least, most) => format!("a number of {least} to {most}"),
            Integer(i64::MIN, i64::MAX) => "an integer".to_owned(),
            Integer(least, i64::MAX) => format!("an integer of at least {least}"),
            Integer(least, most) => format!("an integer of {least} to {most}"),
            List(_, usize::MAX) => "an array".to_owned(),
            List(_, most) => format!("an array of at most {most}"),
            Map(_) | Fields(_) | Typed(_) => "an object".to_owned(),
            Or(_) => self.expected(),
        }
    }
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
