//! What every client must read and write.

use serde::Serialize;
use serde_json::Value;

/// An example of a message.
#[derive(Serialize)]
pub struct Vector {
    pub name: String,
    pub json: Value,
    /// What is written by whoever has read it, where that is not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Value>,
}

impl Vector {
    pub fn new(name: impl Into<String>, message: &impl Serialize) -> Vector {
        let json = serde_json::to_value(message).expect("it can be written");
        Vector { name: name.into(), json, written: None }
    }

    /// One that leaves out what need not be there.
    pub fn short(name: &str, json: Value, message: &impl Serialize) -> Vector {
        Vector { json, ..Vector::new(name, message).written_as_it_is() }
    }

    /// Adds a field that no version knows to the object at `pointer`. Readers ignore it.
    #[must_use]
    pub fn with_unknown(self, pointer: &str, field: &str, value: Value) -> Vector {
        let mut vector = if self.written.is_none() { self.written_as_it_is() } else { self };
        let object = vector.json.pointer_mut(pointer).and_then(Value::as_object_mut);
        let known = object.expect(pointer).insert(field.to_owned(), value);
        assert_eq!(known, None, "{field} is known");
        vector
    }

    /// What a reader of this version makes of it.
    pub fn expected(&self) -> &Value {
        self.written.as_ref().unwrap_or(&self.json)
    }

    fn written_as_it_is(self) -> Vector {
        Vector { written: Some(self.json.clone()), ..self }
    }
}
