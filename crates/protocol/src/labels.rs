//! What a host says about its runs, to find them again: `key=value`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;
use thiserror::Error;

/// So long a key or a value may be: labels are shown in lists, and stand in every record.
const LONGEST: usize = 256;
/// So many labels a run may have.
const MOST: usize = 64;

/// The labels of a run, or the labels that a list chooses runs by.
///
/// ```
/// use fullstop_protocol::Labels;
///
/// let mut labels: Labels = "app=my-app".parse()?;
/// labels.insert("turn", "7")?;
/// assert!(labels.contains_all(&"turn=7".parse()?));
/// assert!(!labels.contains_all(&"turn=8".parse()?));
/// # Ok::<(), fullstop_protocol::LabelError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct Labels(BTreeMap<String, String>);

/// Why this is no label.
///
/// ```
/// use fullstop_protocol::{LabelError, Labels};
///
/// let refused = Labels::default().insert("a key".to_owned(), "value".to_owned());
/// assert_eq!(refused, Err(LabelError::Key("a key".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LabelError {
    /// It has no `=` in it.
    #[error("{0:?} is no label: it is written KEY=VALUE")]
    NoValue(String),
    /// What stands before the `=` cannot be a key.
    #[error("{0:?} is no key of a label: letters, digits, '.', '_', '-' and '/', up to 256")]
    Key(String),
    /// The value of this key cannot be one.
    #[error("the label {0} has a value that is too long, or cannot be shown")]
    Value(String),
    /// There are more labels than a run may have.
    #[error("a run has at most 64 labels")]
    TooMany,
}

impl Labels {
    /// Sets a label; the last value counts.
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<(), LabelError> {
        let (key, value) = (key.into(), value.into());
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        if key.is_empty() || key.len() > LONGEST || !key.bytes().all(letter) {
            return Err(LabelError::Key(key));
        }
        if value.len() > LONGEST || value.contains(char::is_control) {
            return Err(LabelError::Value(key));
        }
        self.0.insert(key, value);
        if self.0.len() > MOST { Err(LabelError::TooMany) } else { Ok(()) }
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether all of these are among them.
    pub fn contains_all(&self, wanted: &Labels) -> bool {
        wanted.iter().all(|(key, value)| self.get(key) == Some(value))
    }

    /// All of them, in order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<BTreeMap<String, String>> for Labels {
    type Error = LabelError;

    fn try_from(pairs: BTreeMap<String, String>) -> Result<Labels, LabelError> {
        let mut labels = Labels::default();
        pairs.into_iter().try_for_each(|(key, value)| labels.insert(key, value))?;
        Ok(labels)
    }
}

impl FromStr for Labels {
    type Err = LabelError;

    /// One label, as a person writes it.
    fn from_str(text: &str) -> Result<Labels, LabelError> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| LabelError::NoValue(text.to_owned()))?;
        let mut labels = Labels::default();
        labels.insert(key, value)?;
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_or_written_is_no_label() {
        for wrong in ["", "key", "=value", "a key=1", "ключ=1", "key=two\nlines"] {
            assert!(wrong.parse::<Labels>().is_err(), "{wrong:?}");
        }
        for fine in ["key=", "a.b/c_d-9=größe", "key=a=b"] {
            assert!(fine.parse::<Labels>().is_ok(), "{fine:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        let mut labels = Labels::default();
        assert_eq!(labels.insert(&*long, ""), Err(LabelError::Key(long.clone())));
        assert_eq!(labels.insert("k", &*long), Err(LabelError::Value("k".to_owned())));
        let filled = (0..=MOST).try_for_each(|n| labels.insert(format!("k{n}"), ""));
        assert_eq!(filled, Err(LabelError::TooMany));
    }
}
