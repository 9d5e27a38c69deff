//! The directory of all runs of one user.

mod remove;

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format::SpecFile;
use crate::generations;
use crate::journal::{JOURNAL, JournalReader};
use crate::log::{LogReader, Piece};
use crate::members::{self, KnownMembers};
use crate::name_index::{self, Entry, NAMES};
use crate::room::{self, Reserve};
use crate::rundir::{self, RECORD, RunDir, Standing};
use fullstop_core::id::Id;
use fullstop_core::words::Stream;
use fullstop_protocol::{Event, Record};
use rustix::fs::{AtFlags, Mode, fstat, mkdirat, readlink, unlinkat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub struct Store {
    root: Dir,
}

/// Why a word names no run, or more than one.
///
/// ```
/// use fullstop_store::{FindError, Store};
///
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-find-{}", std::process::id()));
/// let nobody = Store::at(&dir)?.find("nobody");
/// assert!(matches!(nobody, Err(FindError::Nobody(_))));
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Debug)]
pub enum FindError {
    /// No run has this id or name.
    Nobody(String),
    /// More than one run is meant.
    Several {
        /// What was looked for.
        word: String,
        /// The first of them, with their names.
        candidates: Vec<(Id, Option<String>)>,
        /// How many there are beside those.
        more: usize,
    },
    /// A live run may have this name: it is in no index, and nothing that tells its name can be
    /// read.
    Unreadable {
        /// What was looked for.
        word: String,
        /// The run that cannot be read.
        live: Id,
        /// Why not.
        why: StoreError,
    },
    /// The state directory could not be read.
    Store(StoreError),
}

impl From<StoreError> for FindError {
    fn from(error: StoreError) -> FindError {
        FindError::Store(error)
    }
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindError::Nobody(word) => write!(f, "there is no run {word:?}"),
            FindError::Several { word, candidates, more } => {
                write!(f, "{word:?} may be")?;
                for (place, (id, name)) in candidates.iter().enumerate() {
                    let or = if place == 0 { "" } else { " or" };
                    let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
                    write!(f, "{or} {id}{name}")?;
                }
                if *more > 0 { write!(f, " or {more} others") } else { Ok(()) }
            }
            FindError::Unreadable { word, live, why } => {
                write!(f, "{word:?} may be {live}, which lives, and whose name cannot be read")?;
                write!(f, " ({why}): say the id of the run that is meant")
            }
            FindError::Store(error) => error.fmt(f),
        }
    }
}

impl FindError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            FindError::Nobody(_) => "no-such-run",
            FindError::Several { .. } => "ambiguous",
            FindError::Unreadable { .. } => "unreadable-name",
            FindError::Store(error) => error.code(),
        }
    }
}

impl std::error::Error for FindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FindError::Unreadable { why, .. } | FindError::Store(why) => Some(why),
            FindError::Nobody(_) | FindError::Several { .. } => None,
        }
    }
}

impl Store {
    /// Where it is by default: $FULLSTOP_DIR, or below $XDG_STATE_HOME, or below
    /// ~/.local/state.
    pub fn default_path() -> Result<PathBuf> {
        let var = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        if let Some(own) = var("FULLSTOP_DIR") {
            return absolute(Path::new(&own));
        }
        // The XDG rules say that a relative one is to be ignored.
        let state = var("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || var("HOME").map(|home| Path::new(&home).join(".local/state"));
        absolute(&state.or_else(home).ok_or(StoreError::Nowhere)?.join("fullstop"))
    }

    /// Opens the default one, making it if need be.
    pub fn open() -> Result<Store> {
        Store::at(&Store::default_path()?)
    }

    /// Opens one, making it if need be. Its path is that from the root on, without links: whoever
    /// keeps it may go elsewhere, and makes it anew by that; and runs carry a hash of it, which
    /// is the same by whichever path the directory was opened.
    pub fn at(path: &Path) -> Result<Store> {
        let path = absolute(path)?;
        let mut root = match Dir::open(&path) {
            Err(error) if error.is_missing() => {
                make_all(&path)?;
                Dir::open(&path)?
            }
            other => other?,
        };
        root.path = resolved(&root.fd).unwrap_or(path);
        let path = root.path.as_path();
        let stat = fstat(&root.fd).map_err(|errno| StoreError::io("look at", path, errno))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(StoreError::Foreign { path: path.to_owned(), owner: stat.st_uid });
        }
        if stat.st_mode & 0o077 != 0 {
            // Somebody's home is not ours to close.
            let ours = |name: &String| {
                matches!(name.as_str(), "runs" | "live" | "groups" | NAMES | JOURNAL)
            };
            if !root.names()?.iter().all(ours) {
                return Err(StoreError::Shared { path: path.to_owned() });
            }
            let narrowed = rustix::fs::chmod(path, Mode::RWXU);
            narrowed.map_err(|errno| StoreError::io("make private", path, errno))?;
        }
        Ok(Store { root })
    }

    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// The directory itself, for groups.
    pub fn root(&self) -> &Dir {
        &self.root
    }

    pub(crate) fn into_root(self) -> Dir {
        self.root
    }

    /// A directory for a run that begins now.
    pub fn create(&self, id: &Id) -> Result<RunDir> {
        const TRIES: usize = 100;
        let mut tries = 0;
        loop {
            match self.try_to_create(id) {
                // It is the first one here; or a prune took it for a leaving.
                Err(error) if error.is_missing() && tries < TRIES => {
                    if self.is_blank() {
                        name_index::set_whole(&self.root);
                    }
                    self.root.make("live")?;
                    self.root.make("runs")?;
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    /// No run was ever written down here.
    fn is_blank(&self) -> bool {
        self.root.below("runs").is_err_and(|error| error.is_missing())
    }

    fn try_to_create(&self, id: &Id) -> Result<RunDir> {
        let name = format!("runs/{id}");
        let made = mkdirat(&self.root.fd, name.as_str(), Mode::RWXU);
        made.map_err(|errno| StoreError::io("make", &self.path().join(&name), errno))?;
        let claimed = || RunDir::claim(id, self.root.try_clone()?, self.root.below(&name)?);
        claimed().inspect_err(|_| {
            // What cannot be begun leaves no trace.
            let _ = unlinkat(&self.root.fd, format!("{name}/lock").as_str(), AtFlags::empty());
            let _ = unlinkat(&self.root.fd, name.as_str(), AtFlags::REMOVEDIR);
        })
    }

    /// The directory of a run that is over, for its next generation.
    pub fn reclaim(&self, id: &Id) -> Result<RunDir> {
        RunDir::reclaim(id, self.root.try_clone()?, self.run(id)?)
    }

    /// Sets room aside for the next generation of a run.
    pub fn reserve(&self, id: &Id) -> Result<Reserve> {
        room::reserve(&self.run(id)?)
    }

    /// What keeper and guard have left; nothing, if it is not ours to end.
    pub fn take_over(&self, id: &Id) -> Result<Option<RunDir>> {
        RunDir::take_over(id, self.root.try_clone()?, self.run(id)?)
    }

    /// Lists a run again that was taken off the list although it is not over. Returns whether
    /// it is listed now, to be swept.
    pub fn list_lost(&self, id: &Id) -> Result<bool> {
        match self.run(id) {
            Err(error) if error.is_missing() => Ok(false),
            dir => rundir::list_lost(&self.root, &dir?, id),
        }
    }

    /// Takes a run off the list that has neither keeper nor guard, whatever its record says.
    pub fn put_away(&self, id: &Id) -> Result<()> {
        match self.run(id) {
            // Its directory is gone; there is only the listing.
            Err(error) if error.is_missing() => self.root.clear(&rundir::listing(id)),
            _ => match self.take_over(id)? {
                Some(mut run) => run.finish(),
                None => Err(StoreError::Live { path: self.run_path(id) }),
            },
        }
    }

    fn run(&self, id: &Id) -> Result<Dir> {
        self.root.below(&format!("runs/{id}"))
    }

    pub fn run_path(&self, id: &Id) -> PathBuf {
        self.path().join(format!("runs/{id}"))
    }

    pub fn standing(&self, id: &Id) -> Result<Standing> {
        rundir::standing(&self.root, id)
    }

    /// Whether a live run was listed a moment ago, and its spec is still to be written.
    pub fn is_being_born(&self, id: &Id) -> Result<bool> {
        match self.run(id) {
            Err(error) if error.is_missing() => Ok(false),
            dir => rundir::is_being_born(&self.root, &dir?, id),
        }
    }

    /// Whether nothing of a run is there: neither a listing nor a directory. What cannot
    /// be looked at is an error.
    pub fn is_gone(&self, id: &Id) -> Result<bool> {
        match self.run(id) {
            Err(error) if error.is_missing() => Ok(!rundir::is_listed(&self.root, id)?),
            dir => dir.map(|_| false),
        }
    }

    /// What changes from now on.
    pub fn journal(&self) -> Result<JournalReader> {
        JournalReader::open(self.root.try_clone()?)
    }

    /// The unfinished ones, oldest first.
    pub fn live(&self) -> Result<Vec<Id>> {
        self.ids("live")
    }

    /// Every run there is, oldest first.
    pub fn all(&self) -> Result<Vec<Id>> {
        self.ids("runs")
    }

    fn ids(&self, name: &str) -> Result<Vec<Id>> {
        let names = match self.root.below(name).and_then(|dir| dir.names()) {
            Err(error) if error.is_missing() => Vec::new(),
            other => other?,
        };
        let mut ids: Vec<Id> = names.into_iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// How a run stands, by its record alone; by its spec, if it has none yet.
    pub fn record(&self, id: &Id) -> Result<Record> {
        match self.last_record(id) {
            Ok(record) if record.lock.is_some() => Ok(record),
            _ => generations::read_record(&self.run(id)?),
        }
    }

    /// The members that are known to have been in a run, by its record and its file of members.
    pub fn members(&self, record: &Record) -> Result<KnownMembers> {
        Ok(members::read(&self.run(&record.id)?, record))
    }

    /// The last record that was written, whatever has begun since.
    pub fn last_record(&self, id: &Id) -> Result<Record> {
        self.root.read(&format!("runs/{id}/{RECORD}"))
    }

    pub fn spec(&self, id: &Id) -> Result<SpecFile> {
        generations::read_spec(&self.run(id)?)
    }

    /// The events of a run, from an offset on; a torn last line waits for its end.
    pub fn events(&self, id: &Id, from: u64) -> Result<(Vec<Event>, u64)> {
        rundir::read_events(&self.run(id)?, from)
    }

    /// The log of one of its streams, from its beginning; nothing, if there is none.
    pub fn log(&self, id: &Id, stream: Stream) -> Result<Option<LogReader>> {
        LogReader::open(Arc::new(self.run(id)?), stream)
    }

    /// All that there is of one of its streams; an error, if there is no log of it.
    pub fn output(&self, id: &Id, stream: Stream) -> Result<Vec<u8>> {
        let Some(mut log) = self.log(id, stream)? else {
            let path = self.run_path(id).join(format!("{stream}.log"));
            return Err(StoreError::io("open", &path, Errno::NOENT));
        };
        let mut text = Vec::new();
        while let Some(piece) = log.next()? {
            if let Piece::Bytes { bytes, .. } = piece {
                text.extend(bytes);
            }
        }
        Ok(text)
    }

    /// Where its keeper listens; the directory is to be held while connecting.
    pub fn socket(&self, id: &Id) -> Result<(Dir, PathBuf)> {
        let dir = self.run(id)?;
        let address = rundir::socket_address(&dir);
        Ok((dir, address))
    }

    /// The run meant by an id, the beginning of one, or a name. A whole id always means its run:
    /// no run is born with a name that is written like an id. Live runs are meant before those
    /// that are over; of those, a name means the one that was started last.
    ///
    /// A live run that is in the index costs the listings of two directories and one record,
    /// however many runs live. The index may have lost an entry, and an older fullstop makes
    /// none: before a run that is over is taken by its name, or none at all, each live run that
    /// is not in the index under this word is asked by its record.
    pub fn find(&self, word: &str) -> std::result::Result<Id, FindError> {
        if word.is_empty() {
            return Err(FindError::Nobody(String::new()));
        }
        if let Ok(id) = word.parse::<Id>()
            && self.run(&id).is_ok()
        {
            return Ok(id);
        }
        let (live, named) = (self.live()?, self.named(word)?);
        let listed: HashSet<&Id> = named.iter().map(|entry| &entry.id).collect();
        let (mut meant, mut unreadable) = (Vec::new(), None);
        for id in &live {
            if id.as_str().starts_with(word) {
                meant.push(id.clone());
            } else if listed.contains(id) {
                match self.is_named(id, word) {
                    Ok(true) => meant.push(id.clone()),
                    // Of a live run of which nothing is left to be read the index tells.
                    Ok(false) if self.has_lost_its_files(id)? => meant.push(id.clone()),
                    Ok(false) => {}
                    Err(error) => unreadable = Some(error),
                }
            }
        }
        if let Some(id) = self.one(word, meant)? {
            return Ok(id);
        }
        // It may well be the one that is meant: one that is over must not take its place.
        if let Some(error) = unreadable {
            return Err(error.into());
        }
        if may_begin_an_id(word) {
            let mut begun = self.all()?;
            begun.retain(|id| id.as_str().starts_with(word));
            if let Some(id) = self.one(word, begun)? {
                return Ok(id);
            }
        }
        if let Some(id) = self.find_live(word, live.iter().filter(|id| !listed.contains(id)))? {
            return Ok(id);
        }
        for entry in named.iter().rev() {
            match self.is_named(&entry.id, word) {
                Ok(true) => return Ok(entry.id.clone()),
                Ok(false) => {}
                Err(error) => unreadable = Some(error),
            }
        }
        Err(unreadable.map_or_else(|| FindError::Nobody(word.to_owned()), FindError::Store))
    }

    /// The live run of this name, by the records of these. An error, if it may be one of which
    /// no name can be read.
    fn find_live<'a>(
        &self,
        word: &str,
        live: impl Iterator<Item = &'a Id>,
    ) -> std::result::Result<Option<Id>, FindError> {
        let (mut meant, mut unreadable) = (Vec::new(), Vec::new());
        for id in live {
            match self.record_or_spec(id) {
                Ok(record) if record.name.as_deref() == Some(word) => meant.push(id.clone()),
                // What a later fullstop has written is whole, and its index as well.
                Ok(_) | Err(StoreError::Newer { .. }) => {}
                Err(error) => unreadable.push((id, error)),
            }
        }
        if let Some(id) = self.one(word, meant)? {
            return Ok(Some(id));
        }
        // What no keeper and no guard looks after cannot be the live run of this name; what is
        // being born has no name yet.
        let is_live = |id: &Id| matches!(self.standing(id), Ok(Standing::Live));
        unreadable.retain(|(id, _)| is_live(id) && !self.is_being_born(id).unwrap_or(false));
        if !unreadable.is_empty() {
            let elsewhere = name_index::ids(&self.root)?;
            unreadable.retain(|(id, _)| !elsewhere.contains(id));
        }
        match unreadable.pop() {
            None => Ok(None),
            Some((id, why)) => {
                Err(FindError::Unreadable { word: word.to_owned(), live: id.clone(), why })
            }
        }
    }

    fn one(&self, word: &str, mut ids: Vec<Id>) -> std::result::Result<Option<Id>, FindError> {
        /// More would be no help to anybody.
        const SHOWN: usize = 8;
        if ids.len() < 2 {
            return Ok(ids.pop());
        }
        let more = ids.len().saturating_sub(SHOWN);
        let shown = ids.into_iter().take(SHOWN);
        let name = |id: &Id| self.record_or_spec(id).ok()?.name;
        let candidates = shown.map(|id| (id.clone(), name(&id))).collect();
        Err(FindError::Several { word: word.to_owned(), candidates, more })
    }

    /// Whether neither record nor spec of a live run is there, and it is not being born.
    fn has_lost_its_files(&self, id: &Id) -> Result<bool> {
        match self.record_or_spec(id) {
            Err(error) if error.is_missing() => Ok(!self.is_being_born(id)?),
            _ => Ok(false),
        }
    }

    /// Whether this is the name of a run. What is gone has none, nor has what is being born:
    /// its entry in the index is made before its spec.
    fn is_named(&self, id: &Id, word: &str) -> Result<bool> {
        match self.record_or_spec(id) {
            Ok(record) => Ok(record.name.as_deref() == Some(word)),
            Err(error) if error.is_missing() || self.is_being_born(id)? => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How a run stands; what it was asked to do, if its record is damaged. The name stands
    /// in both.
    fn record_or_spec(&self, id: &Id) -> Result<Record> {
        let by_spec = |why| self.spec(id).map(SpecFile::first_record).map_err(|_| why);
        self.record(id).or_else(by_spec)
    }

    /// The runs that may have this name, by the index; that is made first, if this is the
    /// directory of an older fullstop.
    fn named(&self, word: &str) -> Result<Vec<Entry>> {
        if name_index::is_whole(&self.root) {
            return name_index::entries(&self.root, word);
        }
        let (mut named, mut is_whole) = (Vec::new(), true);
        for id in self.all()? {
            let record = match self.record_or_spec(&id) {
                Ok(record) => record,
                // What is damaged stays so. Whatever else is wrong may pass, and the run is
                // in no index then.
                Err(error) => {
                    is_whole &= error.is_missing()
                        || matches!(error, StoreError::Damaged { .. } | StoreError::Newer { .. });
                    continue;
                }
            };
            let Some(name) = record.name else { continue };
            let entry = Entry::new(&id, record.started_at.unix_ms());
            // Where nothing can be written, every search looks at every run.
            is_whole &= name_index::add(&self.root, &name, &entry).is_ok();
            named.extend((name == word).then_some(entry));
        }
        if is_whole {
            name_index::set_whole(&self.root);
        }
        named.sort_unstable();
        Ok(named)
    }

    /// Removes directories that no list leads to: a process was cut short while it made them or put
    /// them away. It looks at all there is.
    pub fn tidy(&self) -> Result<()> {
        for id in self.all()? {
            if matches!(self.standing(&id), Ok(Standing::Over))
                && let Ok(dir) = self.run(&id)
                && !rundir::list_lost(&self.root, &dir, &id).unwrap_or(false)
                && rundir::tidy(&dir)
            {
                let name = format!("runs/{id}");
                let _ = unlinkat(&self.root.fd, name.as_str(), AtFlags::REMOVEDIR);
            }
        }
        for id in self.live()? {
            let listing = rundir::listing(&id);
            let is_over = || matches!(self.standing(&id), Ok(Standing::Over));
            if self.root.strange(&listing).is_some() && is_over() {
                self.root.clear(&listing)?;
            }
        }
        name_index::tidy(&self.root);
        Ok(())
    }
}

/// Whether it is worth the while to look for an id that begins so.
fn may_begin_an_id(word: &str) -> bool {
    word.bytes().all(|letter| letter.is_ascii_digit() || letter.is_ascii_lowercase())
}

/// Where the kernel says that a directory is; nothing, if it has no path from our root on, or
/// there is no `/proc`.
fn resolved(dir: &OwnedFd) -> Option<PathBuf> {
    let link = readlink(format!("/proc/self/fd/{}", dir.as_raw_fd()), Vec::new()).ok()?;
    let path = PathBuf::from(OsString::from_vec(link.into_bytes()));
    // The kernel says "(unreachable)" before the path, or " (deleted)" behind it.
    let is_plain = path.is_absolute() && !path.as_os_str().as_bytes().ends_with(b" (deleted)");
    is_plain.then_some(path)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| StoreError::io("find", path, error))
}

/// Only the last one is ours alone; those above it may be shared.
fn make_all(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above).map_err(|error| StoreError::io("make", above, error))?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("make", path, error))
        }
        _ => Ok(()),
    }
}
