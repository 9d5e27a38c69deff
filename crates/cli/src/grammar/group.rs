//! `group`: sets of runs that are ended, and kept ended, as a whole.

use super::table::{JSON, ONLY_JSON, STOP_STATUSES};
use super::{BARE, Chapter, Command, Count, Kind, Operand, Opt, Section};

pub static GROUP: Command = Command {
    path: &["group"],
    does: "list, stop, close and open groups of runs",
    usage: "COMMAND",
    about: "\
A group is a named set of runs; plan/research lies in plan, and what is done to
plan is done to it. A run joins one with --group.",
    chapters: &[Chapter { heading: "Commands", commands: &[&LS, &STOP, &CLOSE, &OPEN] }],
    ..BARE
};

const NAME: &[Operand] =
    &[Operand::new("NAME", Kind::Group, Count::One, "which group? give its name")];

static LS: Command = Command {
    path: &["group", "ls"],
    does: "list the groups",
    usage: "[options]",
    sections: &[Section {
        heading: "Telling",
        options: &[Opt::flag("quiet", "names only").short('q'), JSON],
    }],
    ..BARE
};

static STOP: Command = Command {
    path: &["group", "stop"],
    does: "stop every run of a group; new ones may start",
    usage: "[options] NAME",
    operands: NAME,
    sections: ONLY_JSON,
    statuses: STOP_STATUSES,
    ..BARE
};

static CLOSE: Command = Command {
    path: &["group", "close"],
    does: "stop every run of a group, and let none start any more",
    usage: "[options] NAME",
    about: "\
Nothing can start in a closed group, nor in a group below it, until it is opened.
A start that was under way when it was closed is refused, also if it is opened again.",
    operands: NAME,
    sections: ONLY_JSON,
    statuses: STOP_STATUSES,
    ..BARE
};

static OPEN: Command = Command {
    path: &["group", "open"],
    does: "let runs start again in a closed group",
    usage: "[options] NAME",
    operands: NAME,
    sections: ONLY_JSON,
    ..BARE
};
