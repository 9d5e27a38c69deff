//! Those that answer a polite signal, each in its own way.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::setsid;

use crate::Life;
use crate::raw::{self, POLITE, fork};
use crate::roll::Roll;
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

/// How long a save takes.
const SAVING: Duration = Duration::from_millis(300);
/// In how many rounds the children are asked meanwhile.
const ROUNDS: u8 = 6;
/// A child that is silent for so long (a stopped one, say) counts as lost.
const SILENCE: Duration = Duration::from_secs(2);

/// Saves its state when asked to stop, and then does stop.
pub fn save_on_term(stage: &Stage) -> Life {
    stage.path("saved")?;
    raw::block(&POLITE);
    stage.announce(1)?;
    raw::await_one_of(&POLITE);
    sleep(SAVING);
    stage.save()?;
    exit(0)
}

/// Half of the state is the children's: whoever signals the whole group ruins the save.
pub fn save_needs_children(stage: &Stage) -> Life {
    stage.path("saved")?;
    let roll = Roll::call()?;
    let mut children = Vec::new();
    for _ in 0..2 {
        let (ours, theirs) = UnixStream::pair().doing("socketpair")?;
        if fork()?.is_none() {
            drop(ours);
            roll.stand();
            answer(theirs);
        }
        children.push(ours);
    }
    // Only now, so that the children have none of it.
    raw::block(&POLITE);
    roll.all(2)?;
    stage.announce(3)?;
    raw::await_one_of(&POLITE);
    ask(&children).doing("a child did not answer, nothing is saved")?;
    stage.save()?;
    exit(0)
}

fn ask(children: &[UnixStream]) -> io::Result<()> {
    for round in 0..ROUNDS {
        for mut child in children {
            let mut answer = [0];
            child.set_read_timeout(Some(SILENCE))?;
            child.write_all(&[round])?;
            child.read_exact(&mut answer)?;
        }
        sleep(SAVING / ROUNDS.into());
    }
    Ok(())
}

fn answer(mut leader: UnixStream) -> ! {
    let mut question = [0];
    while leader.read_exact(&mut question).is_ok() && leader.write_all(&question).is_ok() {}
    live()
}

/// When asked to stop, it starts a new tree that will not listen, as real agents do.
pub fn tree_on_term(stage: &Stage) -> Life {
    raw::block(&POLITE);
    stage.announce(1)?;
    raw::await_one_of(&POLITE);
    last_minute_tree()?;
    exit(0)
}

fn last_minute_tree() -> Result<(), Trouble> {
    let roll = Roll::call()?;
    if fork()?.is_some() {
        return roll.all(3);
    }
    raw::ignore(&POLITE);
    raw::unblock(&POLITE);
    setsid().doing("setsid")?;
    for _ in 0..2 {
        if fork()?.is_none() {
            break;
        }
    }
    roll.stand();
    live()
}
