//! Which words and fields a schema knows, and which of them stand in a message.

use serde_json::Value;
use std::collections::BTreeSet;

/// A word, and the field in which it stands.
type Word = (String, String);

/// The fields and words of schemas or messages.
#[derive(Default)]
pub struct Coverage {
    pub fields: BTreeSet<String>,
    pub words: BTreeSet<Word>,
    seen: BTreeSet<Word>,
}

impl Coverage {
    pub fn of_schema(root: &Value) -> Coverage {
        let mut coverage = Coverage::default();
        coverage.walk_schema(root, root, "");
        coverage
    }

    pub fn of_messages<'a>(messages: impl IntoIterator<Item = &'a Value>) -> Coverage {
        let mut coverage = Coverage::default();
        messages.into_iter().for_each(|message| coverage.walk_message(message, ""));
        coverage
    }

    /// `field` is the one whose value the schema is for.
    fn walk_schema(&mut self, root: &Value, schema: &Value, field: &str) {
        let Some(keywords) = schema.as_object() else { return };
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => self.follow(root, reference, field),
                ("const", Value::String(word)) => self.add(field, word),
                ("enum", Value::Array(words)) => {
                    words.iter().filter_map(Value::as_str).for_each(|word| self.add(field, word));
                }
                ("properties", Value::Object(fields)) => {
                    for (field, schema) in fields {
                        self.fields.insert(field.clone());
                        self.walk_schema(root, schema, field);
                    }
                }
                ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.walk_schema(root, schema, field);
                    }
                }
                ("items" | "additionalProperties", schema) => self.walk_schema(root, schema, field),
                _ => {}
            }
        }
    }

    fn follow(&mut self, root: &Value, reference: &str, field: &str) {
        // A schema may hold itself.
        if self.seen.insert((field.to_owned(), reference.to_owned())) {
            let part = root.pointer(reference.trim_start_matches('#'));
            self.walk_schema(root, part.expect(reference), field);
        }
    }

    fn walk_message(&mut self, message: &Value, field: &str) {
        match message {
            Value::String(word) => self.add(field, word),
            Value::Array(items) => items.iter().for_each(|item| self.walk_message(item, field)),
            Value::Object(fields) => {
                for (field, value) in fields {
                    self.fields.insert(field.clone());
                    self.walk_message(value, field);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, field: &str, word: &str) {
        self.words.insert((field.to_owned(), word.to_owned()));
    }
}
