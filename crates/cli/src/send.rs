//! `send` and `close-stdin`.

use crate::fail::Fail;
use fullstop::{Run, Runs, blocking};
use fullstop_cli::args::SendOptions;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;

/// As much of stdin as is sent at once.
const CHUNK: usize = 64 * 1024;

pub fn send(options: &SendOptions) -> Result<(), Fail> {
    let run = Runs::open()?.find(&options.id)?;
    if options.text == ["-"] {
        send_stdin(&run, options)?;
    } else {
        let text = options.text.join(OsStr::new(" "));
        blocking::wait(run.send_within(text.as_bytes(), options.timeout))?;
    }
    Ok(blocking::wait(run.send_keys(&options.keys, options.timeout))?)
}

/// As it comes, so that it may come from something that goes on.
fn send_stdin(run: &Run, options: &SendOptions) -> Result<(), Fail> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match io::stdin().read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => blocking::wait(run.send_within(&buffer[..length], options.timeout))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("cannot read stdin: {error}").into()),
        }
    }
}

pub fn close_stdin(id: &str) -> Result<(), Fail> {
    let run = Runs::open()?.find(id)?;
    Ok(blocking::wait(run.close_stdin())?)
}
