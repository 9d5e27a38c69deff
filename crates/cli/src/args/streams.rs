//! The options of `run` and `start` about output, terminals, stdin and secrets.

use super::call::{RunOptions, WindowSize};
use super::words::{Read, Words, wrong};
use crate::grammar::Opt;
use fullstop::{ResizePolicy, Stdin};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Returns whether the option was one of these.
pub fn streams(words: &mut Words<'_>, option: &Opt, options: &mut RunOptions) -> Read<bool> {
    match option.long {
        "no-output-timeout" => options.no_output_timeout = Some(words.timeout(option)?),
        "idle-timeout" => options.idle_timeout = Some(words.timeout(option)?),
        "log" => options.log = true,
        "log-max" => options.log_max = Some(words.bytes(option)?),
        "drain-quiet" => options.drain_quiet = Some(words.timeout(option)?),
        "drain-max" => options.drain_max = Some(words.timeout(option)?),
        "pty" => options.pty = true,
        "size" => options.size = Some(size(&words.text(option)?)?),
        "stdin" => options.stdin = Some(stdin(words.value()?)?),
        "secret-fd" => options.secrets.push(secret(&words.value()?)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn size(text: &str) -> Read<WindowSize> {
    match text {
        "latest" => Ok(WindowSize::Follow(ResizePolicy::Latest)),
        "smallest" => Ok(WindowSize::Follow(ResizePolicy::Smallest)),
        _ => match text.parse() {
            Ok(size) => Ok(WindowSize::Fixed(size)),
            Err(why) => wrong(format!("--size: {why}; or latest, or smallest")),
        },
    }
}

fn stdin(given: OsString) -> Read<Stdin> {
    match given.to_str() {
        Some("") => wrong("--stdin: null, inherit, pipe, or a file"),
        Some("null") => Ok(Stdin::Null),
        Some("inherit") => Ok(Stdin::Inherit),
        Some("pipe") => Ok(Stdin::Pipe),
        _ => Ok(Stdin::File(given.into())),
    }
}

/// Whether the name is one of a variable is the library's to say.
fn secret(given: &OsStr) -> Read<(String, OsString)> {
    let mut parts = given.as_bytes().splitn(2, |&byte| byte == b'=');
    let name = parts.next().and_then(|name| str::from_utf8(name).ok());
    match (name, parts.next()) {
        (Some(name), Some(file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), OsStr::from_bytes(file).to_owned()))
        }
        _ => wrong(format!("--secret-fd: {} is not NAME=FILE", given.to_string_lossy())),
    }
}
