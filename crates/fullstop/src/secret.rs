//! Secrets: what is in a file goes to the command on a descriptor, and nowhere else.

use crate::error::{Error, Result};
use fullstop_cage::plain;
use fullstop_keeper::{Secret, wipe};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// A secret is a key or a certificate; more than this is data.
const MOST: usize = 1 << 20;
/// What names a descriptor of whoever looks, and for anybody else another file.
const OWN_DESCRIPTORS: &[&str] = &["/dev/fd", "/dev/stdin", "/proc/self", "/proc/thread-self"];

/// So begins what fullstop itself sets.
const OURS: &str = "FULLSTOP_";

/// A secret before it is read.
#[derive(Clone, Debug)]
pub(crate) struct SecretFile {
    /// The variable that will hold the number of the descriptor.
    pub name: String,
    pub path: PathBuf,
}

impl SecretFile {
    /// Reads it, to the end of a pipe if it is one.
    pub fn read(&self) -> Result<Secret> {
        let content = File::open(&self.path).and_then(read_all).map_err(|why| self.unread(&why))?;
        // For a restart, which may happen elsewhere.
        let path = std::path::absolute(&self.path).map_err(|why| self.unread(&why))?;
        Ok(Secret {
            name: OsString::from(&self.name).into(),
            path: path.into_os_string().into(),
            content: OsString::from_vec(content).into(),
        })
    }

    /// Reads it once more, for the next generation. What was a pipe is empty now, and
    /// what was a descriptor may be another file.
    pub fn read_again(&self) -> Result<Secret> {
        let own = OWN_DESCRIPTORS.iter().any(|place| self.path.starts_with(place));
        if own || std::fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            let why = io::Error::other("it is no file that can be read again");
            return Err(self.unread(&why));
        }
        self.read()
    }

    fn unread(&self, why: &io::Error) -> Error {
        let (name, path) = (&self.name, self.path.display());
        Error::Unfit(format!("cannot read the secret {name} from {path}: {}", plain(why)))
    }
}

/// Into one place: what grows leaves copies behind, and those who keep the run may have
/// all that we have.
fn read_all(mut file: File) -> io::Result<Vec<u8>> {
    let mut room = vec![0; MOST + 1];
    let mut length = 0;
    let read = loop {
        match file.read(&mut room[length..]) {
            Ok(0) => break Ok(room[..length].to_vec()),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
        if length > MOST {
            break Err(io::Error::other("it is longer than 1 MB"));
        }
    };
    wipe(&mut room[..length]);
    read
}

/// Whether these secrets can be told by their names, beside these variables.
pub(crate) fn check(secrets: &[SecretFile], set: &[OsString]) -> Result<()> {
    for (at, SecretFile { name, .. }) in secrets.iter().enumerate() {
        let why = if !is_variable(name) {
            "is no name of a variable"
        } else if name.starts_with(OURS) {
            "is fullstop's own variable"
        } else if secrets[..at].iter().any(|other| other.name == *name) {
            "is given twice"
        } else if set.iter().any(|key| key == OsStr::new(name)) {
            "is set as a variable as well (--env); it can be one of them"
        } else {
            continue;
        };
        return Err(Error::Unfit(format!("secret: {name:?} {why}")));
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
