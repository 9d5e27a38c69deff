//! Output that is given to a stranger: a descriptor that is handed over a socket leaves
//! the tree, and no kill takes it back.

use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, IoSliceMut, Read, stdout};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::io::{Errno, write};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::Life;
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

const SOCKET: &str = "lend.sock";

/// Often enough that no silence in between is taken for the end.
const PAUSE: Duration = Duration::from_millis(20);

/// Hands its stdout over to whoever listens at `DIR/lend.sock`, says `lent` once it has
/// arrived, and lives; with an argument it ends at once.
pub fn lend(stage: &Stage) -> Life {
    let mut borrower = UnixStream::connect(stage.path(SOCKET)?).doing("connect")?;
    let out = stdout();
    let fds = [out.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    with.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(&borrower, &[IoSlice::new(b"x")], &mut with, SendFlags::empty()).doing("sendmsg")?;
    let mut word = [0; 1];
    borrower.read_exact(&mut word).doing("the borrower")?;
    write(&out, b"lent\n").doing("stdout")?;
    stage.announce(1)?;
    if stage.argument.is_some() {
        std::process::exit(0);
    }
    live()
}

/// Takes what is lent, and when the lender is dead does what its argument says: `hold`
/// it, write `once` and close it when a line comes from `DIR/go`, or write `on` and on.
pub fn borrow(stage: &Stage) -> Life {
    let listener = UnixListener::bind(stage.path(SOCKET)?).doing("bind")?;
    stage.tell("borrower", "listening\n")?;
    let (mut lender, _) = listener.accept().doing("accept")?;
    let lent = receive(&lender)?;
    write(&lender, b"x").doing("the lender")?;
    // Nothing more is ever said: this is the lender's end.
    let _ = lender.read(&mut [0; 1]);
    stage.tell("borrower", "alone\n")?;
    match stage.argument.as_ref().and_then(|word| word.to_str()) {
        Some("once") => {
            let mut word = String::new();
            let go = File::open(stage.path("go")?).doing("go")?;
            BufReader::new(go).read_line(&mut word).doing("go")?;
            write(&lent, b"after\n").doing("what was lent")?;
            drop(lent);
        }
        Some("on") => {
            while let Ok(_) | Err(Errno::INTR) = write(&lent, b"on and on\n") {
                std::thread::sleep(PAUSE);
            }
            stage.tell("borrower", "cut\n")?;
        }
        _ => {}
    }
    live()
}

fn receive(lender: &UnixStream) -> Result<OwnedFd, Trouble> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0; 1];
    recvmsg(lender, &mut [IoSliceMut::new(&mut word)], &mut with, RecvFlags::empty())
        .doing("recvmsg")?;
    let mut fds = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let first = fds.next().and_then(|mut fds| fds.next());
    first.ok_or_else(|| Trouble::Cannot("nothing was lent".into()))
}
