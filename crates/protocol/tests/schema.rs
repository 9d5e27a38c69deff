//! The schemas in `docs/schema` and the vectors in `crates/protocol/vectors` are those of the
//! types. With `FULLSTOP_BLESS=1` the first test writes them.

use fullstop_protocol::{RequestKind, RunState, SpecError};
use jsonschema::Validator;
use schema::checked_in::{schema_of, stale_file, vectors_of};
use schema::coverage::Coverage;
use schema::message::{Message, messages};
use schema::refused::{A_LADDER_WITH_A_MISTAKE, refuse, refused_specs};
use schema::report::reports;
use schema::samples::states;
use schema::spec::specs;
use serde_json::Value;
use std::collections::BTreeSet;

mod schema {
    pub mod checked_in;
    pub mod coverage;
    pub mod event;
    pub mod generated;
    pub mod message;
    pub mod record;
    pub mod refused;
    pub mod reply;
    pub mod report;
    pub mod request;
    pub mod samples;
    pub mod spec;
    pub mod vector;
}

#[test]
fn what_is_checked_in_is_current() {
    let mut stale = Vec::new();
    for Message { name, schema, vectors, .. } in messages() {
        stale.extend(stale_file(schema_of(name), &schema));
        stale.extend(stale_file(vectors_of(name), &vectors));
    }
    stale.extend(stale_file(vectors_of("refused"), &refused_specs()));
    assert!(
        stale.is_empty(),
        "the types have changed: {stale:#?}\n\
         FULLSTOP_BLESS=1 cargo test -p fullstop-protocol --test schema writes these files; \
         see in their diff whether clients can follow"
    );
}

#[test]
fn every_vector_is_read_and_written_again() {
    for Message { name: message, vectors, read_and_write, .. } in messages() {
        let names: BTreeSet<&str> = vectors.iter().map(|vector| &*vector.name).collect();
        assert_eq!(names.len(), vectors.len(), "two vectors of {message} share a name");
        for vector in &vectors {
            let written = read_and_write(&vector.json);
            assert_eq!(written.as_ref(), Ok(vector.expected()), "{message}: {}", vector.name);
        }
    }
}

#[test]
fn every_vector_is_allowed_by_its_schema() {
    for Message { name: message, schema, vectors, .. } in messages() {
        let allowed = validator(schema.as_value());
        for vector in &vectors {
            assert_allowed(&allowed, &vector.json, &format!("{message}: {}", vector.name));
        }
    }
}

/// A schema that forgets a field would allow it all the same, where unknown ones are allowed.
#[test]
fn every_field_that_is_written_stands_in_the_schema() {
    for Message { name: message, schema, vectors, .. } in messages() {
        let mut strict = schema.to_value();
        strict["unevaluatedProperties"] = false.into();
        let strict = validator(&strict);
        for vector in &vectors {
            assert_allowed(&strict, vector.expected(), &format!("{message}: {}", vector.name));
        }
    }
}

/// Whoever adds a field, a word, or a kind of request, reply or event adds a vector.
#[test]
fn every_field_and_every_word_stands_in_a_vector() {
    let (specs, reports) = (specs(), reports());
    for Message { name: message, schema, vectors, .. } in messages() {
        // What is a message itself has vectors of its own.
        let within = match message {
            "start" => &specs[..],
            "record" => &reports[..],
            _ => &[],
        };
        let known = Coverage::of_schema(schema.as_value());
        let shown = Coverage::of_messages(vectors.iter().chain(within).map(|vector| &vector.json));
        let fields: Vec<_> = known.fields.difference(&shown.fields).collect();
        let words: Vec<_> = known.words.difference(&shown.words).collect();
        assert!(
            fields.is_empty() && words.is_empty(),
            "no vector of {message} has the fields {fields:?} and the words {words:?}"
        );
    }
}

#[test]
fn a_keeper_names_every_request() {
    let known = words_of("request", "type");
    assert_eq!(known, BTreeSet::from(RequestKind::TYPES.map(str::to_owned)));
}

/// The schema of a state is written by hand.
#[test]
fn a_schema_names_every_state() {
    let states = states().filter(|state| !matches!(state, RunState::Other(_)));
    let states: BTreeSet<String> = states.map(|state| state.word().to_owned()).collect();
    assert_eq!(words_of("record", "state"), states);
}

#[test]
fn what_is_refused_says_which_field_it_is_for() {
    for spec in refused_specs() {
        let error = refuse(&spec.json).expect_err(&spec.name);
        let field = match &error {
            SpecError::Unsupported { field } => Some(field),
            _ => None,
        };
        assert_eq!((error.code(), field), (spec.code, spec.field.as_ref()), "{}", spec.name);
    }
}

/// A client that checks a spec against the schema refuses no more than a keeper, and hardly less.
#[test]
fn the_schema_of_a_spec_allows_what_can_be_read() {
    let [spec, ..] = messages();
    let allowed = validator(spec.schema.as_value());
    for refused in refused_specs() {
        // The steps of a ladder are more than a schema can tell.
        if refused.name != A_LADDER_WITH_A_MISTAKE {
            let is_read = (spec.read_and_write)(&refused.json).is_ok();
            assert_eq!(allowed.is_valid(&refused.json), is_read, "{}", refused.name);
        }
    }
}

/// The words that the schema of a message knows in a field.
fn words_of(message: &str, field: &str) -> BTreeSet<String> {
    let message = messages().into_iter().find(|known| known.name == message).expect("a message");
    let words = Coverage::of_schema(message.schema.as_value()).words.into_iter();
    words.filter(|(place, _)| place == field).map(|(_, word)| word).collect()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(schema)
        .expect("it is a schema")
}

fn assert_allowed(schema: &Validator, json: &Value, name: &str) {
    let errors: Vec<String> = schema
        .iter_errors(json)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}
