//! From one generation of a run to the next.
//!
//! Two files change, spec and record, and a SIGKILL may come at any instant. The record is
//! the one that counts: its replacement is the step from one generation to the next. Until
//! the new generation runs, both files of the last one are kept under a second name. So
//! every record finds its spec, and a generation that never begins is undone by two
//! renames, for which a full disk has room.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format::{RecordFile, SpecFile};
use crate::rundir::{RECORD, SPEC};
use rustix::fs::{AtFlags, linkat, renameat};
use rustix::io::Errno;

const OLD_SPEC: &str = "spec.json.old";
const OLD_RECORD: &str = "record.json.old";

/// Writes down what the next generation is asked to do, and that it has begun.
pub(crate) fn begin(dir: &Dir, spec: &SpecFile) -> Result<()> {
    keep(dir, SPEC, OLD_SPEC)?;
    keep(dir, RECORD, OLD_RECORD)?;
    dir.replace(SPEC, spec)?;
    dir.replace(RECORD, &RecordFile::first(spec.clone()))
}

/// Puts back the generation before, after one that never began.
pub(crate) fn undo(dir: &Dir, before: u32) {
    let is_before = |old: RecordFile| old.generation == before;
    if dir.read(OLD_RECORD).is_ok_and(is_before) {
        let _ = renameat(&dir.fd, OLD_RECORD, &dir.fd, RECORD);
    }
    settle(dir);
}

/// Leaves the record with the spec of its own generation, and nothing that a kill has left
/// half done.
pub(crate) fn settle(dir: &Dir) {
    if let Some(true) = fits_old_spec(dir) {
        let _ = renameat(&dir.fd, OLD_SPEC, &dir.fd, SPEC);
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
    let spec = dir.read(SPEC)?;
    match fits_old_spec(dir) {
        Some(true) => dir.read(OLD_SPEC),
        _ => Ok(spec),
    }
}

/// Whether the record is of the generation whose spec was kept; nothing, if none was.
fn fits_old_spec(dir: &Dir) -> Option<bool> {
    let old: SpecFile = dir.read(OLD_SPEC).ok()?;
    let record: RecordFile = dir.read(RECORD).ok()?;
    Some(old.generation == record.generation)
}

/// How a run stands by its record alone. The spec is read in two cases: a run that has
/// just begun has no record yet, and a record of an older fullstop may be that of the
/// generation before.
pub(crate) fn read_record(dir: &Dir) -> Result<RecordFile> {
    match dir.read::<RecordFile>(RECORD) {
        Ok(record) if record.lock.is_some() => Ok(record),
        Ok(record) => Ok(newer_by_spec(dir, record)),
        Err(error) if error.is_missing() => {
            read_spec(dir).map(RecordFile::first).map_err(|_| error)
        }
        Err(error) => Err(error),
    }
}

/// The same, for whoever would act on a run that is over: it makes sure that no older
/// fullstop has begun another generation since.
pub(crate) fn read_record_surely(dir: &Dir) -> Result<RecordFile> {
    let record = read_record(dir)?;
    Ok(if record.state.is_over() { newer_by_spec(dir, record) } else { record })
}

fn newer_by_spec(dir: &Dir, record: RecordFile) -> RecordFile {
    match read_spec(dir) {
        Ok(spec) if spec.generation > record.generation => RecordFile::first(spec),
        _ => record,
    }
}

/// Gives a file a second name, under which its replacement leaves it.
fn keep(dir: &Dir, name: &str, old: &str) -> Result<()> {
    dir.remove(old)?;
    match linkat(&dir.fd, name, &dir.fd, old, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(StoreError::io("keep", &dir.path.join(name), errno)),
    }
}
