//! The schemas, as they are checked in.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of a message, in which unknown fields are allowed.
pub fn of<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    RecursiveTransform(shorten_description).transform(&mut schema);
    schema
}

/// The schema of a spec: what is not known is refused.
pub fn of_spec<T: JsonSchema>() -> Schema {
    let mut schema = of::<T>();
    RecursiveTransform(close).transform(&mut schema);
    schema
}

/// The schema of a message that has a spec within. What the spec is made of is closed; if
/// the rest of the message has it as well, it is closed there too.
pub fn around_spec<T: JsonSchema, Spec: JsonSchema>() -> Schema {
    let mut schema = of::<T>();
    let mut spec = of_spec::<Spec>();
    let parts = spec.remove("$defs").unwrap_or_default();
    spec.remove("$schema");
    spec.remove("title");
    let Some(Value::Object(definitions)) = schema.get_mut("$defs") else {
        panic!("{} names nothing", T::schema_name());
    };
    definitions.insert(Spec::schema_name().into_owned(), spec.to_value());
    definitions.extend(parts.as_object().cloned().unwrap_or_default());
    schema
}

/// Whatever has named fields has no others.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// A description is a comment in Rust. Its examples are code, and its links lead to more
/// code: neither helps who reads a schema. Its line breaks are those of the file.
fn shorten_description(schema: &mut Schema) {
    let Some(Value::String(text)) = schema.get_mut("description") else { return };
    let prose = text.split("```").next().unwrap_or_default().trim_end();
    let paragraphs: Vec<String> =
        prose.split("\n\n").map(|lines| lines.replace('\n', " ")).collect();
    *text = without_links(&paragraphs.join("\n\n"));
}

/// ``[`Word`](path)`` and ``[`Word`]`` become `` `Word` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let (word, behind) = link.split_once("`]").expect("a link is closed");
        plain.extend([before, "`", word, "`"]);
        rest = match behind.strip_prefix('(').and_then(|path| path.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    plain + rest
}
