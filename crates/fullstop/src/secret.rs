//! Secrets: what is in a file goes to the command on a descriptor, and nowhere else.

use crate::error::{CommandError, Error, Result, SecretNameError};
use fullstop_core::duration;
use fullstop_protocol::{Sealed, SecretFile, Text, wipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::retry_on_intr;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A secret is a key or a certificate; more than this is data.
const MOST: usize = 1 << 20;
/// How soon a FIFO must have a writer. It is given with the command that is to write to it.
const OPENED: Duration = Duration::from_secs(5);
/// How long a writer may be silent: it may be asking a person for a password.
const SILENT: Duration = Duration::from_mins(5);
/// Paths that mean a descriptor of the process that opens them, and so another file in another
/// process.
const OWN_DESCRIPTORS: &[&str] = &["/dev/fd", "/dev/stdin", "/proc/self", "/proc/thread-self"];

/// So begins what fullstop itself sets.
const OURS: &str = "FULLSTOP_";

/// Reads a secret, to the end of a pipe if it is one.
pub(crate) fn read(secret: &SecretFile) -> Result<Sealed> {
    read_within(secret, OPENED)
}

/// A FIFO that no process opens to write is waited for so long.
fn read_within(secret: &SecretFile, opened: Duration) -> Result<Sealed> {
    // To open a FIFO would wait for its writer.
    let nonblock = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::RDONLY;
    let file = open(&secret.path.0, nonblock, Mode::empty()).map(File::from);
    let content = file.map_err(io::Error::from).and_then(|file| read_all(&file, opened));
    content.map(Sealed::new).map_err(|why| unread(secret, why))
}

/// Reads it once more, for the next generation. What was a pipe is empty now, and what was a
/// descriptor may be another file.
pub(crate) fn read_again(secret: &SecretFile) -> Result<Sealed> {
    let is_file = std::fs::metadata(&secret.path.0).map_or(true, |found| found.is_file());
    if names_own_descriptor(&secret.path) || !is_file {
        let why = io::Error::other("it is no file that can be read again");
        return Err(unread(secret, why));
    }
    read(secret)
}

/// Whether this path means another file for every process.
pub(crate) fn names_own_descriptor(path: &Text) -> bool {
    OWN_DESCRIPTORS.iter().any(|place| Path::new(&path.0).starts_with(place))
}

fn unread(secret: &SecretFile, source: io::Error) -> Error {
    let (name, path) = (secret.name.clone(), PathBuf::from(&secret.path.0));
    Error::Secret { name, path, source }
}

/// Into one buffer of the full size: a buffer that grows leaves copies behind, and guard and
/// keeper may see all of this process's memory.
fn read_all(mut file: &File, opened: Duration) -> io::Result<Vec<u8>> {
    let is_fifo = file.metadata()?.file_type().is_fifo();
    let mut had_writer = !is_fifo;
    let mut room = vec![0; MOST + 1];
    let mut length = 0;
    let read = loop {
        match file.read(&mut room[length..]) {
            // A FIFO ends before its first writer has opened it, and after its last.
            Ok(0) if had_writer => break Ok(room[..length].to_vec()),
            Ok(0) => match await_writer(file, opened) {
                Ok(()) => had_writer = true,
                Err(error) => break Err(error),
            },
            Ok(more) => (length, had_writer) = (length + more, true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                had_writer = true;
                if let Err(error) = await_more(file) {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
        if length > MOST {
            break Err(io::Error::other("it is longer than 1 MB"));
        }
    };
    wipe(&mut room[..length]);
    read
}

/// Waits until a writer has written to a FIFO, or has left it.
fn await_writer(file: &File, opened: Duration) -> io::Result<()> {
    if await_readable(file, opened)? {
        return Ok(());
    }
    let why = format!("no process has opened it to write within {}", duration::format(opened));
    Err(io::Error::other(why))
}

/// Waits until its writer has written more, or has left it.
fn await_more(file: &File) -> io::Result<()> {
    if await_readable(file, SILENT)? {
        return Ok(());
    }
    let why = format!("its writer has written nothing for {}", duration::format(SILENT));
    Err(io::Error::other(why))
}

/// Whether there is something to be read, or the end of it, within that time.
fn await_readable(file: &File, within: Duration) -> io::Result<bool> {
    let within = Timespec::try_from(within).map_err(io::Error::other)?;
    let mut polled = [PollFd::new(file, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut polled, Some(&within)))? > 0)
}

/// Whether these secrets can be told by their names, beside these variables.
pub(crate) fn check(secrets: &[SecretFile], set: &[OsString]) -> Result<(), CommandError> {
    for (at, SecretFile { name, .. }) in secrets.iter().enumerate() {
        let why = if !is_variable(name) {
            SecretNameError::NoVariable
        } else if name.starts_with(OURS) {
            SecretNameError::Reserved
        } else if secrets[..at].iter().any(|other| other.name == *name) {
            SecretNameError::Twice
        } else if set.iter().any(|key| key == OsStr::new(name)) {
            SecretNameError::IsSet
        } else {
            continue;
        };
        return Err(CommandError::SecretName { name: name.clone(), why });
    }
    Ok(())
}

fn is_variable(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(word)
}

#[cfg(test)]
mod tests;
