//! The messages: for each a schema, vectors, and how it is read.

use super::generated::{around_spec, of, of_spec};
use super::vector::Vector;
use super::{event, record, reply, report, request, spec};
use fullstop_protocol::{Event, Hello, Record, Reply, Report, Request, Spec, Start};
use schemars::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One that stands alone, on the wire or on disk.
pub struct Message {
    /// As its files are called.
    pub name: &'static str,
    pub schema: Schema,
    pub vectors: Vec<Vector>,
    /// What is written again of what was read.
    pub read_and_write: fn(&Value) -> Result<Value, String>,
}

pub fn messages() -> [Message; 8] {
    [
        Message {
            name: "spec",
            schema: of_spec::<Spec>(),
            vectors: spec::specs(),
            read_and_write: |json| again(Spec::from_json(json.to_string().as_bytes())),
        },
        Message {
            name: "start",
            schema: around_spec::<Start, Spec>(),
            vectors: spec::starts(),
            read_and_write: |json| again(Start::from_json(json.to_string().as_bytes())),
        },
        message::<Record>("record", record::records()),
        message::<Report>("report", report::reports()),
        message::<Event>("event", event::events()),
        message::<Hello>("hello", request::hellos()),
        message::<Request>("request", request::requests()),
        message::<Reply>("reply", reply::replies()),
    ]
}

fn message<T>(name: &'static str, vectors: Vec<Vector>) -> Message
where
    T: schemars::JsonSchema + Serialize + DeserializeOwned,
{
    let read_and_write = |json: &Value| again(serde_json::from_str::<T>(&json.to_string()));
    Message { name, schema: of::<T>(), vectors, read_and_write }
}

fn again<T: Serialize, E: ToString>(read: Result<T, E>) -> Result<Value, String> {
    let message = read.map_err(|error| error.to_string())?;
    serde_json::to_value(message).map_err(|error| error.to_string())
}
