//! JSON Schemas of what is written as one string, by a form of its own.

use crate::id::Id;
use crate::ladder::Ladder;
use crate::signal::Signal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl JsonSchema for Id {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a run. Ids sort by birth.",
            "type": "string",
            "pattern": "^[0-9a-hjkmnp-tv-z]{13}$",
        })
    }
}

impl JsonSchema for Ladder {
    fn schema_name() -> Cow<'static, str> {
        "Ladder".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The steps of a stop, each with a target and a patience. It always ends by killing all.",
            "type": "string",
            "examples": ["term@leader:3s,term@tree:2s,kill", "input:\"/exit\\n\":1s,int@group,kill:10s"],
        })
    }
}

impl JsonSchema for Signal {
    fn schema_name() -> Cow<'static, str> {
        "Signal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A signal. It is written by its name in small letters, or by its number if it has none; names are read in either case, with or without SIG.",
            "type": "string",
            "examples": ["term", "rtmin+3", "32"],
        })
    }
}
