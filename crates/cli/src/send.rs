//! `send` and `close-stdin`.

use crate::fail::Fail;
use crate::print::tell_json;
use fullstop::Runs;
use fullstop::front::{Sender, cannot};
use fullstop_cli::args::SendOptions;
use serde_json::json as value;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;

/// As much of stdin as is sent at once.
const CHUNK: usize = 64 * 1024;

pub async fn send(options: &SendOptions) -> Result<(), Fail> {
    let run = Runs::open()?.find(&options.id).await?;
    let mut sender = Sender::new(&run, options.timeout);
    if options.text == ["-"] {
        send_stdin(&mut sender).await?;
    } else {
        let text = options.text.join(OsStr::new(" "));
        sender.send(text.as_bytes()).await?;
    }
    sender.send_keys(&options.keys).await?;
    if options.json {
        tell_json(&value!({ "id": run.id(), "sent": sender.sent() }));
    }
    Ok(())
}

/// As it comes, so that it may come from something that goes on.
async fn send_stdin(sender: &mut Sender<'_>) -> Result<(), Fail> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match io::stdin().read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => sender.send(&buffer[..length]).await?,
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
