//! Specs that are refused.

use super::spec::{full, usual};
use fullstop_protocol::{FailureCode, SPEC_VERSION, Spec, SpecError};
use serde::Serialize;
use serde_json::{Value, json};

pub const A_LADDER_WITH_A_MISTAKE: &str = "a ladder with a mistake";

/// A spec, and what is said of it.
#[derive(Serialize)]
pub struct RefusedSpec {
    pub name: String,
    pub json: Value,
    pub code: FailureCode,
    /// The field, if one is `unsupported`: what this version does not know, or cannot do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

pub fn refused_specs() -> Vec<RefusedSpec> {
    let unknown = [
        ("", "memory_max", "memory_max"),
        ("/drain", "soft_ms", "drain.soft_ms"),
        ("/secrets/0", "mode", "secrets.0.mode"),
        ("/output/terminal", "depth", "output.depth"),
        ("/output/terminal/size", "pixels", "output.size.pixels"),
    ];
    let unknown = unknown.into_iter().map(|(place, field, named)| {
        let mut json = written(&full());
        json.pointer_mut(place).expect(place)[field] = json!(1);
        unsupported(&format!("unknown field {named}"), json, named)
    });
    unknown.chain(later()).chain(invalid()).collect()
}

/// What this version knows, and cannot do.
fn later() -> impl Iterator<Item = RefusedSpec> {
    let fields = ["key", "argv0", "umask", "user", "groups", "rlimits", "limits"];
    let alone = |field: &str| {
        let mut json = written(&usual());
        json[field] = written(&full())[field].clone();
        unsupported(&format!("{field} is for later"), json, field)
    };
    let secrets = Spec { secrets: full().secrets, ..usual() };
    let newer = SPEC_VERSION + 1;
    fields.map(alone).into_iter().chain([
        unsupported("a secret's number is for later", written(&secrets), "secrets.fd"),
        unsupported(
            "a later version",
            json!({"version": newer, "argv": ["true"]}),
            &format!("version {newer}"),
        ),
    ])
}

fn invalid() -> impl Iterator<Item = RefusedSpec> {
    [
        ("no object", json!(["true"])),
        ("no argv", json!({})),
        ("argv is no list", json!({"argv": "true"})),
        ("a word is a number", json!({"argv": ["sleep", 7]})),
        ("a field is null", json!({"argv": ["true"], "ladder": null})),
        ("an unknown cage", json!({"argv": ["true"], "cage": "vm"})),
        ("an unknown output", json!({"argv": ["true"], "output": "tape"})),
        ("an unknown resource", json!({"argv": ["true"], "rlimits": {"luck": 7}})),
        (A_LADDER_WITH_A_MISTAKE, json!({"argv": ["true"], "ladder": "term@moon,kill"})),
        ("a time as people write it", json!({"argv": ["true"], "timeout_ms": "3s"})),
        ("a time below nothing", json!({"argv": ["true"], "timeout_ms": -1})),
        ("part of a millisecond", json!({"argv": ["true"], "timeout_ms": 0.5})),
        ("half a drain", json!({"argv": ["true"], "drain": {"quiet_ms": 7}})),
        ("a variable without a value", json!({"argv": ["true"], "env": ["HOME"]})),
        ("a variable without a name", json!({"argv": ["true"], "env": ["=x"]})),
        ("an environment as a map", json!({"argv": ["true"], "env": {"HOME": "/home/ada"}})),
        ("a label that cannot be shown", json!({"argv": ["true"], "labels": {"app": "a\u{7}"}})),
        ("a label whose key has a space", json!({"argv": ["true"], "labels": {"an app": "a"}})),
        ("bytes that are not base64", json!({"argv": [{"base64": "Zm/"}]})),
        ("bytes in another code", json!({"argv": [{"hex": "666f"}]})),
    ]
    .into_iter()
    .map(|(name, json)| RefusedSpec {
        name: name.to_owned(),
        json,
        code: FailureCode::InvalidSpec,
        field: None,
    })
}

fn unsupported(name: &str, json: Value, field: &str) -> RefusedSpec {
    let (name, field) = (name.to_owned(), Some(field.to_owned()));
    RefusedSpec { name, json, code: FailureCode::Unsupported, field }
}

fn written(spec: &Spec) -> Value {
    serde_json::to_value(spec).expect("it can be written")
}

/// What is said of a spec that somebody wants to start.
pub fn refuse(json: &Value) -> Result<(), SpecError> {
    Spec::from_json(json.to_string().as_bytes())?.check_supported()
}
