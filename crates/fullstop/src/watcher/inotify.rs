//! An inotify that is made when it is needed. A user has 128 of them, for all programs.

use fullstop_cage::os::{FileChanges, WatchId};
use fullstop_store::MEMBERS;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Inotify {
    changes: Option<Arc<FileChanges>>,
    /// Why something could not be watched, the last time.
    problem: Option<String>,
}

/// What has changed.
pub(super) enum Changed {
    These(BTreeSet<WatchId>),
    /// Some of it was lost.
    Any,
}

impl Changed {
    pub fn contains(&self, watch: Option<WatchId>) -> bool {
        match self {
            Changed::These(these) => watch.is_some_and(|watch| these.contains(&watch)),
            Changed::Any => true,
        }
    }
}

impl Inotify {
    /// Nothing, if it cannot be watched.
    pub fn watch(&mut self, path: &Path) -> Option<WatchId> {
        let changes = match &self.changes {
            Some(changes) => Ok(Arc::clone(changes)),
            None => FileChanges::new().map(Arc::new),
        };
        let watched = changes.and_then(|changes| {
            self.changes = Some(Arc::clone(&changes));
            changes.watch(path)
        });
        self.problem = watched.as_ref().err().map(ToString::to_string);
        watched.ok()
    }

    pub fn forget(&self, watch: WatchId) {
        if let Some(changes) = &self.changes {
            changes.forget(watch);
        }
    }

    pub fn take(&self) -> Changed {
        let mut these = BTreeSet::new();
        let is_whole = self.changes.as_ref().is_none_or(|changes| {
            changes.take(|watch, name| {
                // It changes with every process that comes and goes, and nobody follows that.
                if name.is_none_or(|name| name.to_bytes() != MEMBERS.as_bytes()) {
                    these.insert(watch);
                }
            })
        });
        if is_whole { Changed::These(these) } else { Changed::Any }
    }

    pub fn changes(&self) -> Option<Arc<FileChanges>> {
        self.changes.clone()
    }

    pub fn problem(&self) -> Option<String> {
        self.problem.clone()
    }
}
