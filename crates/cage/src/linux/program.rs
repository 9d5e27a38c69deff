//! Finding the program, and saying clearly why it cannot be executed.

use crate::{Command, SpawnError};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Where shells look when there is no PATH.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The files that `program` may mean, in the order they are tried.
pub fn candidates(program: &OsStr, path: Option<&OsStr>) -> Vec<CString> {
    let program = program.as_bytes();
    if program.is_empty() {
        return Vec::new();
    }
    if program.contains(&b'/') {
        return CString::new(program).into_iter().collect();
    }
    let path = path.map_or(DEFAULT_PATH, OsStr::as_bytes);
    let join = |directory: &[u8]| {
        let directory = if directory.is_empty() { b"." } else { directory };
        CString::new([directory, b"/", program].concat()).ok()
    };
    path.split(|&byte| byte == b':').filter_map(join).collect()
}

/// What an exec that failed means. `which` is the candidate that was there, if
/// one was.
pub fn why_not(command: &Command, which: Option<usize>, source: io::Error) -> SpawnError {
    let program = command.program.to_string_lossy().into_owned();
    let Some(path) = which.and_then(|which| command.candidates.get(which)) else {
        return SpawnError::NotFound { program, searched: searched(command) };
    };
    let interpreter = interpreter(path).filter(|interpreter| {
        let file = CString::new(interpreter.as_str()).unwrap_or_default();
        !may_execute(&file)
    });
    SpawnError::NotExecutable { path: path.to_string_lossy().into_owned(), interpreter, source }
}

/// Looks, without executing anything, whether the program could be executed from this
/// working directory.
pub fn check_program(
    program: &OsStr,
    path: Option<&OsStr>,
    cwd: Option<&Path>,
) -> Result<(), SpawnError> {
    let candidates = candidates(program, path);
    let from = |file: &CString| {
        let file = Path::new(OsStr::from_bytes(file.as_bytes()));
        cwd.map_or_else(|| file.to_owned(), |cwd| cwd.join(file))
    };
    let found: Vec<PathBuf> = candidates.iter().map(from).filter(|file| file.is_file()).collect();
    let fits = |file: &PathBuf| {
        let file = CString::new(file.as_os_str().as_bytes()).unwrap_or_default();
        may_execute(&file) && interpreter(&file).is_none_or(|it| is_there(&it, cwd))
    };
    let program = program.to_string_lossy().into_owned();
    match found.first() {
        _ if found.iter().any(fits) => Ok(()),
        None => Err(SpawnError::NotFound { searched: directories(&candidates, &program), program }),
        Some(first) => {
            let file = CString::new(first.as_os_str().as_bytes()).unwrap_or_default();
            let interpreter = interpreter(&file).filter(|it| !is_there(it, cwd));
            let errno = if interpreter.is_some() { Errno::NOENT } else { Errno::ACCESS };
            let (path, source) = (first.to_string_lossy().into_owned(), errno.into());
            Err(SpawnError::NotExecutable { path, interpreter, source })
        }
    }
}

fn is_there(interpreter: &str, cwd: Option<&Path>) -> bool {
    let file = cwd.map_or_else(|| interpreter.into(), |cwd| cwd.join(interpreter));
    CString::new(file.into_os_string().into_vec()).is_ok_and(|file| may_execute(&file))
}

fn searched(command: &Command) -> Vec<String> {
    directories(&command.candidates, &command.program.to_string_lossy())
}

/// Where a program was looked for; nowhere, if it was named by its path.
fn directories(candidates: &[CString], program: &str) -> Vec<String> {
    if program.contains('/') {
        return Vec::new();
    }
    let directory = |file: &CString| {
        let file = file.to_string_lossy();
        file.rsplit_once('/').map(|(directory, _)| directory.to_owned())
    };
    candidates.iter().filter_map(directory).collect()
}

fn may_execute(file: &CStr) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The interpreter a script names in its first line.
fn interpreter(path: &CStr) -> Option<String> {
    let mut head = [0; 256];
    let mut file = fs::File::open(OsStr::from_bytes(path.to_bytes())).ok()?;
    let length = file.read(&mut head).ok()?;
    let line = head[..length].split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    line.split_ascii_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(found: &[CString]) -> Vec<&str> {
        found.iter().filter_map(|file| file.to_str().ok()).collect()
    }

    #[test]
    fn a_path_is_not_searched_for() {
        let found = candidates(OsStr::new("./a"), Some(OsStr::new("/bin")));
        assert_eq!(texts(&found), ["./a"]);
    }

    #[test]
    fn an_empty_part_of_path_is_here() {
        let found = candidates(OsStr::new("a"), Some(OsStr::new("/x::/y")));
        assert_eq!(texts(&found), ["/x/a", "./a", "/y/a"]);
        assert_eq!(texts(&candidates(OsStr::new("a"), None)), ["/bin/a", "/usr/bin/a"]);
        assert!(candidates(OsStr::new(""), None).is_empty());
    }
}
