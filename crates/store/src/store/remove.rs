//! Removing a run that is over.

use super::Store;
use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::journal::{self, Notice};
use crate::name_index::{self, Entry};
use crate::rundir::{self, LOCK};
use fullstop_core::id::Id;
use fullstop_protocol::Record;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use std::time::Duration;

impl Store {
    /// Removes a run that is over. Its lock is held meanwhile, against a restart, and
    /// goes last.
    pub fn remove(&self, id: &Id) -> Result<()> {
        let dir = self.run(id)?;
        let live = || StoreError::Live { path: dir.path.clone() };
        let _held = rundir::hold(&self.root, &dir, id)?;
        if self.root.strange(&rundir::listing(id)).is_some() {
            self.root.clear(&rundir::listing(id))?;
        }
        if rundir::is_listed(&self.root, id)? {
            return Err(live());
        }
        let record = self.record_or_spec(id).ok();
        for name in dir.names()?.iter().filter(|name| *name != LOCK) {
            dir.remove_whole(name)?;
        }
        dir.remove(LOCK)?;
        self.remove_emptied(&dir, id)?;
        // A lost notice is made good by the next look at all runs.
        let _ = journal::append(&self.root, &Notice::of_removed(id, record.as_ref()));
        if let Some(Record { name: Some(name), started_at, .. }) = record {
            name_index::remove(&self.root, &name, &Entry::new(id, started_at.unix_ms()));
        }
        Ok(())
    }

    /// Removes the directory of a run of which nothing is left. A restart that had waited for
    /// the lock may make a new one at this moment: it finds no spec, and gives up.
    fn remove_emptied(&self, dir: &Dir, id: &Id) -> Result<()> {
        const TRIES: u32 = 1000;
        const NAP: Duration = Duration::from_millis(1);
        for _ in 0..TRIES {
            match unlinkat(&self.root.fd, format!("runs/{id}").as_str(), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::NOTEMPTY) => {}
                Err(errno) => return Err(StoreError::io("remove", &dir.path, errno)),
            }
            if let Ok(_held) = rundir::hold(&self.root, dir, id) {
                dir.remove(LOCK)?;
            } else {
                std::thread::sleep(NAP);
            }
        }
        Err(StoreError::Live { path: dir.path.clone() })
    }
}
