//! Who asked for the end of a run, as far as the kernel tells.

use fullstop_cage::linux::{Heard, Peer, process_name};
use fullstop_protocol::{Asker, Timestamp};

/// The sender of a signal. The kernel itself asks for nothing: it tells what was typed.
pub fn of_sender(heard: Heard) -> Option<Asker> {
    let pid = Some(heard.sender).filter(|&pid| pid > 0 && !heard.by_kernel)?;
    Some(Asker {
        at: Timestamp::now(),
        uid: Some(heard.uid),
        pid: Some(pid),
        program: process_name(pid),
        by: None,
    })
}

/// The process at the other end of a connection.
pub fn of_client(peer: Option<Peer>, by: Option<&str>) -> Asker {
    Asker {
        at: Timestamp::now(),
        uid: peer.map(|peer| peer.uid),
        pid: peer.map(|peer| peer.pid),
        program: peer.and_then(|peer| process_name(peer.pid)),
        by: by.map(str::to_owned),
    }
}
