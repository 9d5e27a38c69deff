//! The zoo: programs that behave as badly as real ones do, so that a stop can be
//! tried against each of them. See `zoo/README.md` for who is who.
#![deny(unsafe_code)]

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

mod count;
mod detach;
mod disguise;
mod flood;
mod fuse;
mod graceful;
mod hard;
mod lend;
mod lineage;
#[allow(unsafe_code)]
mod raw;
mod respawn;
mod roll;
mod stage;
mod storm;
mod terminal;
mod threadless;
mod tree;
mod trouble;
mod uid;

use stage::Stage;
use trouble::Trouble;

/// A member's life: it never returns, unless something went wrong.
type Life = Result<Infallible, Trouble>;
type Member = (&'static str, fn(&Stage) -> Life);

/// Every member that a test can stop, in the order of the README.
const MEMBERS: &[Member] = &[
    ("plain", tree::plain),
    ("ignore-term", tree::ignore_term),
    ("stopped-child", tree::stopped_child),
    ("exit-at-once", tree::exit_at_once),
    ("wide", tree::wide),
    ("chain", tree::chain),
    ("own-group", detach::own_group),
    ("own-session", detach::own_session),
    ("nohup", detach::nohup),
    ("daemon", detach::daemon),
    ("daemon-bare-env", detach::daemon_bare_env),
    ("daemon-no-fds", detach::daemon_no_fds),
    ("hold-stdout", detach::hold_stdout),
    ("leftovers", detach::leftovers),
    ("respawn-pair", respawn::respawn_pair),
    ("hop", respawn::hop),
    ("storm", storm::storm),
    ("flood", flood::flood),
    ("save-on-term", graceful::save_on_term),
    ("save-needs-children", graceful::save_needs_children),
    ("tree-on-term", graceful::tree_on_term),
    ("own-pty", terminal::own_pty),
    ("subreaper", lineage::subreaper),
    ("clone-parent", lineage::clone_parent),
    ("namespaces", lineage::namespaces),
    ("change-uid", uid::change_uid),
    ("setuid-root", uid::setuid_root),
    ("disguise", disguise::disguise),
    ("frozen-writer", hard::frozen_writer),
    ("fuse-reader", fuse::reader),
    ("vfork-parent", hard::vfork_parent),
];

/// What tests need beside the members, or members need to become themselves.
const HELPERS: &[Member] = &[
    ("bystander", tree::bystander),
    ("unburied", tree::unburied),
    ("fuse-serve", fuse::serve),
    ("lend", lend::lend),
    ("borrow", lend::borrow),
    ("count", count::count),
    ("threadless", threadless::threadless),
    (detach::BARE_ENV_DAEMON, detach::bare_env_daemon),
    (uid::SUID_CHILD, uid::suid_child),
];

const USAGE: &str = "usage: zoo [--life SECONDS] [--dir DIR] NAME [ARGUMENT] | zoo list";

/// No member lives longer than this, whoever forgets it.
const LONGEST_LIFE: Duration = Duration::from_mins(2);

fn main() -> ExitCode {
    let end = match visit() {
        Ok(code) => return code,
        Err(trouble) => trouble,
    };
    if let Some(line) = end.line() {
        // Nothing to be done when stderr is closed: the status speaks for itself.
        let _ = writeln!(std::io::stderr(), "zoo: {line}");
    }
    end.status()
}

fn visit() -> Result<ExitCode, Trouble> {
    let (life, stage, name) = arguments(std::env::args_os().skip(1))?;
    if name == "list" {
        let names: Vec<_> = MEMBERS.iter().map(|(name, _)| *name).collect();
        let _ = writeln!(std::io::stdout(), "{}", names.join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    uid::refuse_to_serve_strangers(&name)?;
    let (_, member) = MEMBERS
        .iter()
        .chain(HELPERS)
        .find(|(known, _)| *known == name)
        .ok_or_else(|| Trouble::Usage(format!("no member is called {name:?}; {USAGE}")))?;
    raw::start_clock(life);
    match member(&stage)? {}
}

fn arguments(
    mut given: impl Iterator<Item = OsString>,
) -> Result<(Duration, Stage, String), Trouble> {
    let usage = || Trouble::Usage(USAGE.into());
    let mut life = LONGEST_LIFE;
    let mut dir = None;
    let name = loop {
        let word = given.next().ok_or_else(usage)?.into_string().map_err(|_| usage())?;
        match word.as_str() {
            "--dir" => dir = Some(given.next().ok_or_else(usage)?.into()),
            "--life" => {
                let seconds = given.next().and_then(|s| s.to_str()?.parse().ok());
                life = Duration::from_secs(seconds.ok_or_else(usage)?).min(LONGEST_LIFE);
            }
            word if word.starts_with('-') => return Err(usage()),
            _ => break word,
        }
    };
    let argument = given.next();
    if given.next().is_some() {
        return Err(usage());
    }
    Ok((life, Stage { dir, argument }, name))
}
