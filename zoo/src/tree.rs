//! Trees of every shape, and what the plain ones do about signals.

use std::process::exit;

use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::Life;
use crate::raw::{self, POLITE, fork};
use crate::roll::Roll;
use crate::stage::{Stage, live};
use crate::trouble::Doing;

/// A leader, three children, and a child of one of those.
pub fn plain(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    for nth in 0..3 {
        let None = fork()? else { continue };
        if nth == 0 && fork()?.is_none() {
            roll.stand();
            live();
        }
        roll.stand();
        live();
    }
    roll.all(4)?;
    stage.announce(5)?;
    live()
}

/// Nobody in this tree cares for a polite signal.
pub fn ignore_term(stage: &Stage) -> Life {
    raw::ignore(&POLITE);
    children(stage, 2)
}

/// So many children side by side.
pub fn wide(stage: &Stage) -> Life {
    children(stage, stage.number(100)?)
}

fn children(stage: &Stage, count: usize) -> Life {
    let roll = Roll::call()?;
    for _ in 0..count {
        if fork()?.is_none() {
            roll.stand();
            live();
        }
    }
    roll.all(count)?;
    stage.announce(count + 1)?;
    live()
}

/// Each process is the only child of the one before it.
pub fn chain(stage: &Stage) -> Life {
    let links = stage.number(200)?;
    let roll = Roll::call()?;
    for nth in 0..links {
        let Some(_next) = fork()? else { continue };
        if nth == 0 {
            roll.all(links)?;
            stage.announce(links + 1)?;
        } else {
            roll.stand();
        }
        live();
    }
    if links == 0 {
        stage.announce(1)?;
    } else {
        roll.stand();
    }
    live()
}

/// A child that is stopped, and so acts on no signal but SIGKILL and SIGCONT.
pub fn stopped_child(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    let Some(child) = fork()? else {
        raw::end_even_if_stopped()?;
        roll.stand();
        live();
    };
    roll.all(1)?;
    kill_process(child, Signal::STOP).doing("stopping the child")?;
    waitid(WaitId::Pid(child), WaitIdOptions::STOPPED).doing("waiting for the stop")?;
    stage.announce(2)?;
    live()
}

pub fn exit_at_once(stage: &Stage) -> Life {
    stage.announce(1)?;
    exit(0)
}

/// Leaves nobody but its dead: so many children, none of them waited for. Exits 3.
pub fn unburied(stage: &Stage) -> Life {
    let mut children = Vec::new();
    for _ in 0..stage.number(3000)? {
        match fork()? {
            Some(child) => children.push(child),
            None => exit(0),
        }
    }
    for child in children {
        waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            .doing("waitid")?;
    }
    exit(3)
}

/// An innocent: nobody may ever touch it.
pub fn bystander(stage: &Stage) -> Life {
    stage.announce(1)?;
    live()
}
