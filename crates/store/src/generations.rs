//! From one generation of a run to the next.
//!
//! Two files change, spec and record, and a SIGKILL may come at any instant. The record is
//! the one that counts: its replacement is the step from one generation to the next. Until
//! the new generation runs, both files of the last one are kept under a second name. So
//! every record finds its spec, and a generation that never begins is undone by two
//! renames, for which a full disk has room.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format::{Format, SpecFile};
use crate::rundir::{RECORD, SPEC};
use fullstop_protocol::Record;
use rustix::fs::{AtFlags, linkat, renameat};
use rustix::io::Errno;

const OLD_SPEC: &str = "spec.json.old";
const OLD_RECORD: &str = "record.json.old";

/// Writes down what the next generation is asked to do, and that it has begun. Its events are
/// numbered behind those that were `told`, or of which the record knows.
pub(crate) fn begin(dir: &Dir, spec: &SpecFile, told: u64) -> Result<()> {
    let known = dir.read::<Record>(RECORD).map_or(0, |record| record.events);
    keep(dir, SPEC, OLD_SPEC)?;
    keep(dir, RECORD, OLD_RECORD)?;
    dir.replace(SPEC, spec)?;
    let first = spec.clone().first_record();
    dir.replace(RECORD, &Record { events: told.max(known), ..first })
}

/// Puts back the generation before, after one that never began.
pub(crate) fn undo(dir: &Dir, before: u32) {
    let is_before = |old: Record| old.generation == before;
    if dir.read::<Record>(OLD_RECORD).is_ok_and(is_before) {
        let _ = renameat(&dir.fd, OLD_RECORD, &dir.fd, RECORD);
    }
    settle(dir);
}

/// Leaves the record with the spec of its own generation, and nothing that a kill has left
/// half done.
pub(crate) fn settle(dir: &Dir) {
    match fits_old_spec(dir) {
        Ok(true) => drop(renameat(&dir.fd, OLD_SPEC, &dir.fd, SPEC)),
        Ok(false) => {}
        // Which spec is the record's own cannot be told now: both pairs stay.
        Err(_) => return,
    }
    forget(dir);
    for name in [SPEC, RECORD] {
        let _ = dir.remove(&format!("{name}.new"));
    }
}

/// Removes what was kept of the generation before.
pub(crate) fn forget(dir: &Dir) {
    let _ = dir.remove(OLD_SPEC);
    let _ = dir.remove(OLD_RECORD);
}

/// What the generation that the record tells of was asked to do.
pub(crate) fn read_spec(dir: &Dir) -> Result<SpecFile> {
    let spec: SpecFile = dir.read(SPEC)?;
    if fits_old_spec(dir)? { dir.read(OLD_SPEC) } else { Ok(spec) }
}

/// Whether a spec was kept, and the record is of its generation. That a file cannot be read
/// does not say that it does not fit.
fn fits_old_spec(dir: &Dir) -> Result<bool> {
    let Some(old) = read_if_there::<SpecFile>(dir, OLD_SPEC)? else { return Ok(false) };
    let record = read_if_there::<Record>(dir, RECORD)?;
    Ok(record.is_some_and(|record| record.generation == old.generation))
}

fn read_if_there<T: Format>(dir: &Dir, name: &str) -> Result<Option<T>> {
    match dir.read(name) {
        Err(error) if error.is_missing() => Ok(None),
        read => read.map(Some),
    }
}

/// How a run stands by its record alone. The spec is read in two cases: a run that has
/// just begun has no record yet, and a record of an older fullstop may be that of the
/// generation before.
pub(crate) fn read_record(dir: &Dir) -> Result<Record> {
    match dir.read::<Record>(RECORD) {
        Ok(record) if record.lock.is_some() => Ok(record),
        Ok(record) => Ok(begun_since(dir, &record).ok().flatten().unwrap_or(record)),
        // A spec that is there and cannot be read is what is wrong with the run.
        Err(error) if error.is_missing() => read_spec(dir)
            .map(SpecFile::first_record)
            .map_err(|why| if why.is_missing() { error } else { why }),
        Err(error) => Err(error),
    }
}

/// As `read_record`, for a caller that acts on a run that is over: it makes sure that no older
/// fullstop has begun another generation since.
pub(crate) fn read_record_surely(dir: &Dir) -> Result<Record> {
    let record = read_record(dir)?;
    if !record.state.is_over() {
        return Ok(record);
    }
    Ok(begun_since(dir, &record)?.unwrap_or(record))
}

/// The generation that the spec tells of, if it is a later one than that of the record.
fn begun_since(dir: &Dir, record: &Record) -> Result<Option<Record>> {
    let spec = match read_spec(dir) {
        Err(error) if error.is_missing() => return Ok(None),
        spec => spec?,
    };
    Ok((spec.generation > record.generation).then(|| spec.first_record()))
}

/// Gives a file a second name, under which its replacement leaves it.
fn keep(dir: &Dir, name: &str, old: &str) -> Result<()> {
    dir.remove(old)?;
    match linkat(&dir.fd, name, &dir.fd, old, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(StoreError::io("keep", &dir.path.join(name), errno)),
    }
}
