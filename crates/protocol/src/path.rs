//! A path that may not be there, written as [`Text`] is.

use crate::text::Text;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use std::path::PathBuf;

/// For the `with` of serde.
#[allow(clippy::ref_option)] // serde asks so.
pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| Text(path.clone().into_os_string())).serialize(serializer)
}

/// For the `with` of serde.
pub fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PathBuf>, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.map(|text| text.0.into()))
}
