//! `send` and `close-stdin`.

use crate::fail::Fail;
use crate::print::tell_json;
use fullstop::{Input, Runs, blocking};
use fullstop_cage::cannot;
use fullstop_cli::args::SendOptions;
use serde_json::json as value;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;

/// As much of stdin as is sent at once.
const CHUNK: usize = 64 * 1024;

pub fn send(options: &SendOptions) -> Result<(), Fail> {
    let run = Runs::open()?.find(&options.id)?;
    let mut input = run.input().with_patience(options.timeout);
    if options.text == ["-"] {
        send_stdin(&mut input)?;
    } else {
        let text = options.text.join(OsStr::new(" "));
        blocking::wait(input.send(text.as_bytes()))?;
    }
    if !options.keys.is_empty() {
        blocking::wait(input.send_keys(&options.keys))?;
    }
    if options.json {
        tell_json(&value!({ "id": run.id(), "sent": input.sent() }));
    }
    Ok(())
}

/// As it comes, so that it may come from something that goes on.
fn send_stdin(input: &mut Input) -> Result<(), Fail> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match io::stdin().read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => blocking::wait(input.send(&buffer[..length]))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot("read stdin")(error).into()),
        }
    }
}

pub fn close_stdin(id: &str, as_json: bool) -> Result<(), Fail> {
    let run = Runs::open()?.find(id)?;
    blocking::wait(run.close_stdin())?;
    if as_json {
        tell_json(&value!({ "id": run.id(), "closed": true }));
    }
    Ok(())
}
