//! Which runs are meant: by labels, and by group.

use crate::status::Status;

/// Which runs are meant; at first all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    labels: Vec<(String, String)>,
    group: Option<String>,
}

impl Filter {
    /// Only those with this label too.
    pub fn add_label(&mut self, key: String, value: String) {
        self.labels.push((key, value));
    }

    /// Only those in this group, or in one inside it.
    pub fn set_group(&mut self, path: String) {
        self.group = Some(path);
    }

    pub fn fits(&self, run: &Status) -> bool {
        let is_inside = |group: &String| {
            let rest = run.group.as_deref().and_then(|own| own.strip_prefix(group.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let has = |(key, value): &(String, String)| run.labels.get(key) == Some(value.as_str());
        self.labels.iter().all(has) && self.group.as_ref().is_none_or(is_inside)
    }
}
