//! The line between a run and the program that it belongs to, from that program's side.

use crate::line::say_at_once;
use crate::owner::Owner;
use fullstop_protocol::RequestKind;
use std::os::unix::net::UnixStream;

/// Held by the handles of a run that this program has begun. When the last of them is dropped,
/// the keeper is told so, and the run is stopped by its own ladder if it is not to outlive its
/// host. If this program dies nothing is told: the line closes, and the keeper is in a hurry.
#[derive(Debug)]
pub(crate) struct HostLine {
    stream: UnixStream,
    by: Option<String>,
    /// The process that holds it: what drops a copy of it in a fork lets nothing go.
    owner: Owner,
}

impl HostLine {
    pub fn new(stream: UnixStream, by: Option<&str>) -> HostLine {
        HostLine { stream, by: by.map(str::to_owned), owner: Owner::this_process() }
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Says this, if it can be said without waiting.
    pub fn say(&self, kind: RequestKind) {
        say_at_once(&self.stream, self.by.as_deref(), kind);
    }
}

impl Drop for HostLine {
    fn drop(&mut self) {
        if self.owner.is_this_process() {
            self.say(RequestKind::Leave);
        }
    }
}
