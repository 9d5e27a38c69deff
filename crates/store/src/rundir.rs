//! One run's directory.

mod events;
mod restore;
mod standing;

pub(crate) use events::read_events;
pub use restore::Name;
pub use standing::Standing;
pub(crate) use standing::{is_being_born, is_listed, list_lost, standing, tidy};

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format::SpecFile;
use crate::generations;
use crate::groups::{GroupName, Joined};
use crate::journal::{self, Notice};
use crate::members::{self, KnownMembers, MEMBERS, MemberFile};
use crate::name_index::{self, Entry};
use crate::room::{self, ROOM};
use fullstop_cage::linux::{is_locked, try_lock};
use fullstop_core::id::Id;
use fullstop_protocol::{GroupGenerations, RECORD_VERSION, Record, RunState};
use rustix::fs::{AtFlags, FileType, OFlags, fstat, linkat, statat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use standing::{is_first, is_unwritten};
use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const SPEC: &str = "spec.json";
pub const RECORD: &str = "record.json";
pub const EVENTS: &str = "events.jsonl";
pub(crate) const LOCK: &str = "lock";
const SOCKET: &str = "control.sock";
/// Held while keeper or guard lives.
const LIVE: i64 = 0;
/// Held by whoever sweeps.
const SWEEP: i64 = 1;

/// A run directory with its lock: of its keeper and guard, or of a sweep.
#[derive(Debug)]
pub struct RunDir {
    id: Id,
    root: Dir,
    dir: Dir,
    lock: File,
    joined: Option<Joined>,
    /// The generation before this one, if there was one, and when that was started.
    before: Option<(u32, Entry)>,
    /// The name, and where it stands in the index.
    named: OnceCell<(String, Entry)>,
    /// Files of the generation before may still be kept.
    keeps_old: Cell<bool>,
    /// The state that the journal was last told.
    noticed: RefCell<Option<RunState>>,
    /// Whether events were appended after the last notice.
    has_unnoticed_events: Cell<bool>,
    /// There may be a file of members: most runs are over without one.
    has_members: Cell<bool>,
    /// It was put away: its names are gone on purpose.
    finished: bool,
}

impl RunDir {
    /// Takes the lock of a new run, or of the next generation of an old one, and
    /// lists it among the unfinished. It is never listed without its lock held.
    pub(crate) fn claim(id: &Id, root: Dir, dir: Dir) -> Result<RunDir> {
        let path = dir.path.join(LOCK);
        let lock = hold(&root, &dir, id)?;
        let listed = linkat(&dir.fd, LOCK, &root.fd, listing(id).as_str(), AtFlags::empty());
        listed.map_err(|errno| match errno {
            // The last generation is not finished; a sweep comes first.
            Errno::EXIST => StoreError::Live { path: dir.path.clone() },
            errno => StoreError::io("list", &path, errno),
        })?;
        Ok(RunDir::new(id, root, dir, lock))
    }

    fn new(id: &Id, root: Dir, dir: Dir, lock: File) -> RunDir {
        RunDir {
            id: id.clone(),
            root,
            dir,
            lock,
            joined: None,
            before: None,
            named: OnceCell::new(),
            keeps_old: Cell::new(false),
            noticed: RefCell::default(),
            has_unnoticed_events: Cell::new(false),
            has_members: Cell::new(false),
            finished: false,
        }
    }

    /// The same for a run that has been. Its files are kept until its next generation
    /// runs, for the case that it never does.
    pub(crate) fn reclaim(id: &Id, root: Dir, dir: Dir) -> Result<RunDir> {
        let mut run = RunDir::claim(id, root, dir)?;
        run.expect_members();
        match run.read_spec() {
            Ok(spec) => {
                let started = Entry::new(id, spec.started_at.unix_ms());
                run.before = Some((spec.generation, started));
            }
            Err(error) => return run.finish().and(Err(error)),
        }
        Ok(run)
    }

    /// Takes over what keeper and guard have left; nothing, if one of them lives,
    /// or somebody else sweeps it.
    pub(crate) fn take_over(id: &Id, root: Dir, dir: Dir) -> Result<Option<RunDir>> {
        let lock = match root.open_regular(&listing(id), OFlags::RDWR) {
            // Somebody has put it away meanwhile.
            Err(error) if error.is_missing() => return Ok(None),
            other => other?,
        };
        let why = |error| StoreError::io("lock", &root.path.join(listing(id)), error);
        // Who claims looks for a sweep in the opposite order, so one sees the other.
        let ours = try_lock(lock.as_fd(), SWEEP).map_err(why)?
            && !is_locked(lock.as_fd(), LIVE).map_err(why)?
            && is_at(&root, &listing(id), &lock);
        Ok(ours.then(|| {
            let run = RunDir::new(id, root, dir, lock);
            run.keeps_old.set(true);
            run.expect_members();
            run
        }))
    }

    pub fn id(&self) -> &Id {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.dir.path
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Registers in a group as it is now; an error, if that is closed. To be called once it
    /// listens, and before anybody is born.
    pub fn join(&mut self, group: &GroupName) -> Result<()> {
        /// A prune that comes between is not met so often in a row.
        const TRIES: usize = 1000;
        let mut tries = 0;
        loop {
            let asked = group.ask(&self.root)?;
            match self.join_as_asked(group, &asked.generations) {
                Err(StoreError::GroupClosedMeanwhile(_)) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }

    /// As [`RunDir::join`], for a start that was asked for earlier: it is refused as well if
    /// the group was closed since, though it may be open again.
    pub fn join_as_asked(&mut self, group: &GroupName, seen: &GroupGenerations) -> Result<()> {
        self.joined = Some(group.join(&self.root, self, seen)?);
        Ok(())
    }

    /// Knows the group it joined under its last owner, by its record.
    pub fn rejoin(&mut self, record: &Record) {
        let group = record.group.as_ref().and_then(|name| name.parse().ok());
        self.joined = group.map(|group: GroupName| Joined::of(&group, &self.id));
    }

    /// Is no member of its group any more.
    pub fn leave_group(&mut self) {
        if let Some(joined) = self.joined.take() {
            joined.leave(&self.root);
        }
    }

    /// The lock, by which a group knows its members.
    pub(crate) fn lock_path(&self) -> (&OwnedFd, &'static str) {
        (&self.dir.fd, LOCK)
    }

    /// Writes down what was asked for. Of a later generation this is the beginning, and
    /// its first record comes with it. A first one has no record before it has lived for a
    /// moment, and is read by its spec until then.
    pub fn write_spec(&self, spec: &SpecFile) -> Result<()> {
        self.list_name(spec)?;
        // There is nobody who could read a new one half written: it is not listed
        // without a keeper, and a keeper has it.
        if spec.generation == 1 {
            return self.dir.write_new(SPEC, spec);
        }
        self.keeps_old.set(true);
        generations::begin(&self.dir, spec, self.count_events())
    }

    /// Lists the run under its name, if it has one.
    fn list_name(&self, spec: &SpecFile) -> Result<()> {
        let Some(name) = &spec.spec.name else { return Ok(()) };
        let entry = Entry::new(&self.id, spec.started_at.unix_ms());
        match &self.before {
            None => name_index::add(&self.root, name, &entry)?,
            Some((_, before)) => name_index::renew(&self.root, name, before, &entry)?,
        }
        let _ = self.named.set((name.clone(), entry));
        Ok(())
    }

    /// Writes the record, and appends a notice to the journal if the state is another one,
    /// or if events were appended since the last notice. If there is no room for the notice,
    /// on a full disk, the record is written all the same.
    pub fn write_record(&self, record: &Record) -> Result<()> {
        // The last record is written into its room: that spares a file to make and one to
        // remove. A stuck run keeps the room for its end.
        if record.state.is_over() && room::write_whole(&self.dir, record).is_ok() {
            // A writer that was cut short may have left it.
            self.dir.clear(&format!("{RECORD}.new"))?;
        } else {
            match self.dir.replace(RECORD, record) {
                Err(error) if error.is_full() && record.report.is_some() => {
                    room::write(&self.dir, record).map_err(|_| error)?;
                }
                other => other?,
            }
        }
        if record.state != RunState::Starting && self.before.is_some() && self.keeps_old.take() {
            generations::forget(&self.dir);
        }
        if self.has_unnoticed_events.get() || self.noticed.borrow().as_ref() != Some(&record.state)
        {
            self.notify(record);
        }
        Ok(())
    }

    /// Appends a notice to the journal. To be called where events were appended, and no
    /// record follows soon that would bring a notice with it.
    pub fn notify(&self, record: &Record) {
        let notice = Notice::of(record);
        if journal::append(&self.root, &notice).is_ok() {
            self.noticed.replace(Some(record.state.clone()));
            self.has_unnoticed_events.set(false);
        }
    }

    /// Takes the room that its last record will need.
    pub fn take_room(&self, first: &Record) -> Result<()> {
        room::take(&self.dir, first)
    }

    /// Writes what has changed among its members.
    pub fn write_members(&self, members: &mut MemberFile) -> Result<()> {
        self.expect_members();
        members.write(&self.dir)
    }

    /// Who is known to have been in it, by this record and by the file of members.
    pub fn read_members(&self, record: &Record) -> KnownMembers {
        members::read(&self.dir, record)
    }

    /// An earlier owner may have written the members down.
    pub fn expect_members(&self) {
        self.has_members.set(true);
    }

    /// Cut short before its spec was whole, and so before anybody was born.
    pub fn is_stillborn(&self) -> bool {
        is_unwritten(&self.dir)
    }

    /// Whether it was born, as far as the files tell that are left: all but the lock come after
    /// the spec.
    pub fn was_begun(&self) -> bool {
        let names = self.dir.names().unwrap_or_default();
        !names.iter().all(|name| is_first(name))
    }

    /// What tells this lock from that of a copy.
    pub fn lock_inode(&self) -> Option<u64> {
        fstat(&self.lock).ok().map(|stat| stat.st_ino)
    }

    /// The generation before this one; zero, if it is the first.
    pub fn generation_before(&self) -> u32 {
        self.before.as_ref().map_or(0, |(generation, _)| *generation)
    }

    pub fn read_spec(&self) -> Result<SpecFile> {
        generations::read_spec(&self.dir)
    }

    /// The record of its last generation, whichever version of fullstop began that.
    /// As it is to be written again: in the version that is written.
    pub fn read_record(&self) -> Result<Record> {
        let record = generations::read_record_surely(&self.dir)?;
        Ok(Record { version: RECORD_VERSION, ..record })
    }

    /// A file for output.
    pub fn append_to(&self, name: &str) -> Result<File> {
        self.dir.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
    }

    /// Listens for orders. The path goes through the held directory, so that it is
    /// short enough for a socket however long the real one is.
    pub fn listen(&self) -> Result<OwnedFd> {
        /// As many as the kernel lets wait: nobody who wants a stop is sent away.
        const BACKLOG: i32 = 4096;
        let path = self.dir.path.join(SOCKET);
        let why = |errno: Errno| StoreError::io("listen on", &path, errno);
        self.dir.clear(SOCKET)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(why)?;
        let address = SocketAddrUnix::new(socket_address(&self.dir)).map_err(why)?;
        bind(&socket, &address).map_err(why)?;
        listen(&socket, BACKLOG).map_err(why)?;
        Ok(socket)
    }

    /// The run is over: it is not among the unfinished any more, nor in its group,
    /// and what only a live run needs is removed. The lock goes last: without it the
    /// directory belongs to whoever claims it next, and is not touched again.
    pub fn finish(&mut self) -> Result<()> {
        self.finished = true;
        let named = is_at(&self.dir, LOCK, &self.lock);
        if !named && !is_at(&self.root, &listing(&self.id), &self.lock) {
            return Ok(());
        }
        if self.keeps_old.take() {
            generations::settle(&self.dir);
        }
        self.leave_group();
        // Whatever stands in the place of one of these, it keeps no run unfinished.
        self.root.clear(&listing(&self.id))?;
        self.dir.clear(SOCKET)?;
        self.dir.clear(ROOM)?;
        if self.has_members.get() {
            self.dir.clear(MEMBERS)?;
        }
        self.dir.clear(LOCK)
    }

    /// Gives up a run that never began, and leaves no trace of it; nothing but its
    /// predecessor, if it had one.
    pub fn abandon(mut self) {
        let named = self.named.take();
        if let Some((generation, started)) = self.before.take() {
            if self.keeps_old.take() {
                generations::undo(&self.dir, generation);
            }
            if let Some((name, entry)) = named {
                let _ = name_index::renew(&self.root, &name, &entry, &started);
            }
            let _ = self.finish();
            return;
        }
        let _ = self.finish();
        for name in self.dir.names().unwrap_or_default() {
            let _ = self.dir.remove(&name);
        }
        let _ = std::fs::remove_dir(&self.dir.path);
        if let Some((name, entry)) = named {
            name_index::remove(&self.root, &name, &entry);
        }
    }

    /// What must stay open for as long as this is held.
    pub fn descriptors(&self) -> [RawFd; 3] {
        [self.root.fd.as_raw_fd(), self.dir.fd.as_raw_fd(), self.lock.as_raw_fd()]
    }
}

/// Takes the lock of a run that nobody looks after.
pub(crate) fn hold(root: &Dir, dir: &Dir, id: &Id) -> Result<File> {
    /// A second: far longer than it takes to finish a run, to begin or to remove one.
    const TRIES: u32 = 1000;
    const NAP: Duration = Duration::from_millis(1);
    let why = |error| StoreError::io("lock", &dir.path.join(LOCK), error);
    for _ in 0..TRIES {
        let lock = match dir.open_file(LOCK, OFlags::RDWR | OFlags::CREATE) {
            // Nobody can hold what is no file of ours.
            Err(_) if dir.strange(LOCK).is_some() => {
                dir.clear(LOCK)?;
                continue;
            }
            other => other?,
        };
        if try_lock(lock.as_fd(), LIVE).map_err(why)? {
            // Who sweeps does not hold that byte; who finishes a run removes its
            // lock, perhaps just now. The sweep must be asked for first: afterwards
            // nobody is left who could remove it.
            if is_locked(lock.as_fd(), SWEEP).map_err(why)? {
                break;
            }
            if is_at(dir, LOCK, &lock) {
                return Ok(lock);
            }
            if dir.strange(LOCK).is_some() {
                dir.clear(LOCK)?;
            }
        } else if is_listed(root, id)? {
            break;
        } else {
            // It is over, and about to be let go.
            std::thread::sleep(NAP);
        }
    }
    Err(StoreError::Live { path: dir.path.clone() })
}

/// Whether this is the file that others find by that name, and a regular one: nothing else can
/// be a lock of ours.
pub(crate) fn is_at(dir: &Dir, name: &str, file: &File) -> bool {
    let named = statat(&dir.fd, name, AtFlags::SYMLINK_NOFOLLOW);
    matches!((named, fstat(file)), (Ok(named), Ok(file)) if named.st_ino == file.st_ino
        && FileType::from_raw_mode(file.st_mode).is_file())
}

pub(crate) fn listing(id: &Id) -> String {
    format!("live/{id}")
}

/// The address of a run's keeper while the directory is held.
pub(crate) fn socket_address(dir: &Dir) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", dir.fd.as_raw_fd()))
}
