//! An environment as the kernel has it: a list of `NAME=value`.

use crate::text::Text;
use serde::de::Error as _;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

pub fn serialize<S: Serializer>(
    variables: &[(Text, Text)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(variables.len()))?;
    for (name, value) in variables {
        let parts = [name.0.as_bytes(), b"=", value.0.as_bytes()];
        list.serialize_element(&Text(OsString::from_vec(parts.concat())))?;
    }
    list.end()
}

pub fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(Text, Text)>, D::Error> {
    let list = Vec::<Text>::deserialize(deserializer)?;
    list.into_iter().map(|text| split(text).map_err(D::Error::custom)).collect()
}

/// A name has at least one letter; that may be `=` itself, which is how shells on other
/// systems hide theirs.
fn split(text: Text) -> Result<(Text, Text), &'static str> {
    let mut name = text.0.into_vec();
    let at = name.iter().skip(1).position(|byte| *byte == b'=').map(|at| at + 1);
    let at = at.ok_or("a variable is written NAME=value")?;
    let value = name.split_off(at + 1);
    name.truncate(at);
    let text = |bytes| Text(OsString::from_vec(bytes));
    Ok((text(name), text(value)))
}
