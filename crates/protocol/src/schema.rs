//! JSON Schemas of what is written in a form of its own. All others are derived, beside
//! their types.
//!
//! They tell what is read: a field that may be left out is not required, even where this
//! version always writes it.

use crate::labels::Labels;
use crate::sealed::Sealed;
use crate::state::RunState;
use crate::text::Text;
use crate::timestamp::Timestamp;
use crate::word::Word;
use fullstop_core::words::Reason;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
        json_schema!({
            "description": "A string where it is UTF-8, and otherwise its bytes in base64.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "base64": {
                            "type": "string",
                            "contentEncoding": "base64",
                            "pattern": BASE64,
                        },
                    },
                    "required": ["base64"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// A variable of an environment, as it is written.
pub(crate) enum Variable {}

impl JsonSchema for Variable {
    fn schema_name() -> Cow<'static, str> {
        "Variable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let meaning = "NAME=value. Where it is bytes, they are those of the whole.";
        let mut schema = described::<Text>(generator, meaning);
        // It says nothing of an object. A name has at least one letter, which may be `=`.
        schema.insert("pattern".to_owned(), r"^[\s\S][^=]*=".into());
        schema
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A point in time, in UTC.",
            "type": "string",
            "format": "date-time",
            "pattern": "Z$",
            "examples": ["2026-11-16T00:59:25.448Z"],
        })
    }
}

impl JsonSchema for Sealed {
    fn schema_name() -> Cow<'static, str> {
        "Sealed".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What is in a secret, in hexadecimal digits.",
            "type": "string",
            "pattern": "^([0-9a-fA-F]{2})*$",
        })
    }
}

impl JsonSchema for Labels {
    fn schema_name() -> Cow<'static, str> {
        "Labels".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What a host says about its runs, to find them again.",
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z0-9._/-]{1,256}$"},
            "additionalProperties": {
                "type": "string",
                // Its 256 bytes are at most as many characters.
                "maxLength": 256,
                "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$",
            },
            "maxProperties": 64,
        })
    }
}

/// The words that are known stand beside any other.
impl<T: JsonSchema> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("WordOf{}", T::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("fullstop_protocol::Word<{}>", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [generator.subschema_for::<T>(), {"type": "string"}]})
    }
}

impl JsonSchema for RunState {
    fn schema_name() -> Cow<'static, str> {
        "RunState".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        flat_state(generator, &STATES)
    }
}

/// The state of a run that has a report.
pub(crate) enum ReportedState {}

impl JsonSchema for ReportedState {
    fn schema_name() -> Cow<'static, str> {
        "ReportedState".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let [_starting, _running, _stopping, reported @ ..] = &STATES;
        flat_state(generator, reported)
    }
}

/// What stands beside the word of a state.
struct State {
    word: &'static str,
    meaning: &'static str,
    needed: &'static [&'static str],
    optional: &'static [&'static str],
}

const STATES: [State; 6] = [
    State {
        word: "starting",
        meaning: "The command does not run yet.",
        needed: &[],
        optional: &[],
    },
    State { word: "running", meaning: "The command runs.", needed: &[], optional: &[] },
    State {
        word: "stopping",
        meaning: "A step of a stop was taken.",
        needed: &["reason", "step"],
        optional: &["left_ms", "alive"],
    },
    State {
        word: "stuck",
        meaning: "The last step was taken, and there is no proof; it is tried again.",
        needed: &["reason"],
        optional: &["alive", "tries", "tried_at"],
    },
    State { word: "ended", meaning: "Nobody of it is left.", needed: &["reason"], optional: &[] },
    State {
        word: "released",
        meaning: "The leader exited, and the rest was handed over on purpose.",
        needed: &[],
        optional: &["reason"],
    },
];

/// One flat object with the fields of all states. What a word needs depends on the word.
fn flat_state(generator: &mut SchemaGenerator, states: &[State]) -> Schema {
    let known =
        states.iter().map(|state| json!({"const": state.word, "description": state.meaning}));
    let known: Vec<Value> = known.collect();
    let fields = [
        ("reason", described::<Word<Reason>>(generator, "Why it ends, or has ended.")),
        ("step", described::<String>(generator, "The step that was taken last.")),
        ("left_ms", described::<Option<u64>>(generator, "How long the step is waited for.")),
        ("alive", described::<Option<usize>>(generator, "How many were alive when it was taken.")),
        ("tries", described::<Option<u32>>(generator, "How often the last step was taken.")),
        (
            "tried_at",
            described::<Option<Timestamp>>(generator, "When it was taken for the last time."),
        ),
    ];
    let is_used = |field: &str| {
        states.iter().any(|state| state.needed.contains(&field) || state.optional.contains(&field))
    };
    let mut properties: Map<String, Value> = fields
        .into_iter()
        .filter(|(field, _)| is_used(field))
        .map(|(field, schema)| (field.to_owned(), schema.to_value()))
        .collect();
    let word = json!({
        "description": "Any other word is one of a later fullstop, and no end.",
        "anyOf": [{"type": "string", "oneOf": known}, {"type": "string", "minLength": 1}],
    });
    properties.insert("state".to_owned(), word);
    let needy = states.iter().filter(|state| !state.needed.is_empty());
    let rules = needy.map(|state| {
        json!({
            "if": {"properties": {"state": {"const": state.word}}},
            "then": {"required": state.needed},
        })
    });
    json_schema!({
        "description": "How a run stands. Lengths of time count from the `at` that stands beside it.",
        "type": "object",
        "properties": properties,
        "required": ["state"],
        "allOf": rules.collect::<Vec<Value>>(),
    })
}

fn described<T: JsonSchema>(generator: &mut SchemaGenerator, text: &str) -> Schema {
    let mut schema = generator.subschema_for::<T>();
    schema.insert("description".to_owned(), text.into());
    schema
}

/// A hello has a type as every other message has. It is no field of its struct.
pub(crate) fn name_hello(schema: &mut Schema) {
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.insert("type".to_owned(), json!({"type": "string", "const": "hello"}));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.insert(0, "type".into());
    }
}

/// The kind that holds what a later fullstop has written is any but those that are known.
/// Without this it would allow a known kind that lacks its fields.
pub(crate) fn keep_kinds_apart(schema: &mut Schema) {
    let Some(Value::Array(mut kinds)) = schema.remove("anyOf") else { return };
    let known: Vec<Value> =
        kinds.iter().filter_map(|kind| kind.pointer("/properties/type/const")).cloned().collect();
    let is_later = |kind: &&mut Value| kind.pointer("/properties/type").is_none();
    for kind in kinds.iter_mut().filter(is_later) {
        kind["properties"] = json!({"type": {"type": "string", "not": {"enum": &known}}});
        kind["required"] = json!(["type"]);
    }
    schema.insert("oneOf".to_owned(), kinds.into());
}
