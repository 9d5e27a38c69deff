//! `send` and `close-stdin`.

use crate::fail::Fail;
use crate::print::tell_json;
use fullstop::{Input, Runs};
use fullstop_cage::cannot;
use fullstop_cli::args::SendOptions;
use serde_json::json as value;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;

/// As much of stdin as is sent at once.
const CHUNK: usize = 64 * 1024;

pub async fn send(options: &SendOptions) -> Result<(), Fail> {
    let run = Runs::open()?.find(&options.id).await?;
    let mut input = run.input().with_patience(options.timeout);
    if options.text == ["-"] {
        send_stdin(&mut input).await?;
    } else {
        let text = options.text.join(OsStr::new(" "));
        input.send(text.as_bytes()).await?;
    }
    if !options.keys.is_empty() {
        input.send_keys(&options.keys).await?;
    }
    if options.json {
        tell_json(&value!({ "id": run.id(), "sent": input.sent() }));
    }
    Ok(())
}

/// As it comes, so that it may come from something that goes on.
async fn send_stdin(input: &mut Input) -> Result<(), Fail> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match io::stdin().read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => input.send(&buffer[..length]).await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot("read stdin")(error).into()),
        }
    }
}

pub async fn close_stdin(id: &str, as_json: bool) -> Result<(), Fail> {
    let run = Runs::open()?.find(id).await?;
    run.close_stdin().await?;
    if as_json {
        tell_json(&value!({ "id": run.id(), "closed": true }));
    }
    Ok(())
}
