//! Handing a secret to the command, on a descriptor and nowhere else.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};

/// Shells and scripts use single digits for themselves.
const FIRST: RawFd = 10;

/// A file without a name that holds `content` and can never be changed, read from its
/// beginning. It is not closed by exec: the command inherits it by its number.
///
/// ```
/// use std::{fs::File, io::Read, os::fd::AsRawFd};
///
/// let secret = fullstop_cage::linux::secret(b"hunter2")?;
/// assert!(secret.as_raw_fd() >= 10);
/// let mut content = String::new();
/// File::from(secret).read_to_string(&mut content)?;
/// assert_eq!(content, "hunter2");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn secret(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(make()?);
    file.write_all(content)?;
    file.rewind()?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    let secret = fcntl_dupfd_cloexec(&file, FIRST)?;
    fcntl_setfd(&secret, FdFlags::empty())?;
    Ok(secret)
}

/// Where programs in memory are forbidden, it must be said that this is none; before
/// kernel 6.3 that cannot be said.
fn make() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"secret", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"secret", flags),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::fcntl_getfd;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    #[test]
    fn it_cannot_be_changed() {
        let secret = secret(b"as it is").expect("a secret");
        assert!(!fcntl_getfd(&secret).expect("flags").contains(FdFlags::CLOEXEC));
        let number = secret.as_raw_fd();
        let mut file = File::from(secret);
        assert!(file.write_all(b"other").is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(100).is_err());
        // Nor by opening it anew.
        let again = File::options().write(true).open(format!("/proc/self/fd/{number}"));
        assert!(again.and_then(|mut again| again.write_all(b"other")).is_err());
        let mut content = String::new();
        file.read_to_string(&mut content).expect("text");
        assert_eq!(content, "as it is");
    }

    #[test]
    fn a_command_reads_it_by_its_number() {
        let content = vec![b'x'; 200_000];
        let secret = secret(&content).expect("a secret");
        let script = format!("cat /dev/fd/{}", secret.as_raw_fd());
        let read = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert!(read.status.success() && read.stdout == content);
    }
}
