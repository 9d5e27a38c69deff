//! The table of commands.

use super::group::GROUP;
use super::logs::LOGS;
use super::run::{DETACH_KEYS, RUN, START};
use super::send::{CLOSE_STDIN, SEND};
use super::{BARE, Chapter, Command, Count, Kind, Operand, Opt, Section, Statuses};

/// The root of everything that can be said.
pub static FULLSTOP: Command = Command {
    does: "run a command so that stopping it stops everything it started",
    usage: "COMMAND [options]",
    about: "\
fullstop runs a command so that stopping it stops everything it started,
and says \"stopped\" only when the kernel agrees.",
    sections: &[Section {
        heading: "Options",
        options: &[Opt::flag("version", "show the version").short('V')],
    }],
    chapters: &[
        // The first is looked at first, and `run` is in a hurry.
        Chapter { heading: "Running", commands: &[&RUN, &START, &RESTART] },
        Chapter { heading: "Looking", commands: &[&PS, &TREE, &SHOW, &LOGS, &EVENTS, &WAIT] },
        Chapter { heading: "Talking", commands: &[&ATTACH, &SEND, &CLOSE_STDIN] },
        Chapter { heading: "Stopping", commands: &[&STOP, &KILL, &SIGNAL, &GROUP] },
        Chapter { heading: "Tidying", commands: &[&RM, &PRUNE, &SWEEP] },
        Chapter {
            heading: "Knowing",
            commands: &[&DOCTOR, &DEMO, &COMPLETIONS, &MAN, &HELP_COMMAND],
        },
    ],
    ..BARE
};

pub(super) const JSON: Opt = Opt::flag("json", "print JSON, for programs");
pub(super) const ONLY_JSON: &[Section] = &[Section { heading: "Telling", options: &[JSON] }];
/// In place of ids.
const LABEL: Opt =
    Opt::with("label", "K=V", Kind::Assignment, "every run with this label").repeats();
const BY_LABEL: Section = Section { heading: "Choosing", options: &[LABEL] };
const DRY_RUN: Opt = Opt::flag("dry-run", "say what would be done, and do nothing");

/// For `rm` and `prune`, which otherwise remove only runs that have ended.
const FORGET: Opt = Opt::flag("forget", "only lost runs that cannot be judged from here").more(
    ": those of another machine or pid namespace, usually of a container that is gone; their \
     records are removed, and no process is signalled",
);

const WHICH_RUN: &str = "which run? give its id";
pub(super) const ID: Operand = Operand::new("ID", Kind::Run, Count::One, WHICH_RUN);
const IDS: Operand = Operand::new("ID", Kind::Run, Count::Some, WHICH_RUN);
const ANY_IDS: Operand = Operand::new("ID", Kind::Run, Count::Any, WHICH_RUN);
const PAGE: Operand = Operand::new("COMMAND", Kind::Page, Count::Any, "");

/// What an ID may be, said where one is taken.
pub(super) const ABOUT_IDS: &str =
    "An ID is a run's id, the beginning of one that no other run shares, or a name.";

static RESTART: Command = Command {
    path: &["restart"],
    does: "stop runs, then start them again as they were",
    usage: "[options] ID…|--label K=V",
    about: "\
An ID is a run's id, the beginning of one that no other run shares, or a name. What
has its caller's stdin, stdout or descriptors is not restarted: start it anew.",
    operands: &[ANY_IDS],
    sections: &[BY_LABEL, Section { heading: "Telling", options: &[JSON] }],
    ..BARE
};

static PS: Command = Command {
    path: &["ps"],
    does: "list the runs",
    usage: "[options]",
    sections: &[
        Section {
            heading: "Choosing",
            options: &[
                Opt::flag("all", "those that have ended, too").short('a'),
                Opt::with("group", "G", Kind::Group, "only those of this group"),
                Opt::with("label", "K=V", Kind::Assignment, "only those with this label").repeats(),
            ],
        },
        Section {
            heading: "Telling",
            options: &[
                Opt::flag("quiet", "ids only").short('q'),
                JSON,
                Opt::flag("watch", "stay, and show every change").short('w'),
            ],
        },
    ],
    ..BARE
};

static TREE: Command = Command {
    path: &["tree"],
    does: "show the living processes of a run",
    usage: "[options] ID",
    about: ABOUT_IDS,
    operands: &[ID],
    sections: ONLY_JSON,
    ..BARE
};

static SHOW: Command = Command {
    path: &["show"],
    does: "show all that is known of a run",
    usage: "[options] ID",
    about: ABOUT_IDS,
    operands: &[ID],
    sections: ONLY_JSON,
    ..BARE
};

static ATTACH: Command = Command {
    path: &["attach"],
    does: "look at a run's terminal, and type into it",
    usage: "[options] ID",
    about: "\
Shows the screen of a run that has a terminal of its own as it is now, and stays
until the run ends or the detach keys are typed; the run goes on without it.
An ID is a run's id, the beginning of one that no other run shares, or a name.",
    operands: &[ID],
    sections: &[Section {
        heading: "Looking",
        options: &[Opt::flag("view", "only look; Ctrl-C leaves, too"), DETACH_KEYS],
    }],
    statuses: Some(&Statuses {
        usual: "the run's, as `fullstop wait` gives it; 0 if detached.",
        special: &[("125", "there is no such run, or it has no terminal")],
    }),
    ..BARE
};

static EVENTS: Command = Command {
    path: &["events"],
    does: "show what happened to runs, in order",
    usage: "[options] [ID…]",
    about: "Without an ID, what happened to all of them.",
    operands: &[ANY_IDS],
    sections: &[Section {
        heading: "Telling",
        options: &[Opt::flag("follow", "stay, and show what comes").short('f'), JSON],
    }],
    ..BARE
};

static WAIT: Command = Command {
    path: &["wait"],
    does: "wait until runs have ended",
    usage: "[options] ID…|--label K=V",
    about: "\
Waits for all of them, and tells of each how it ended, in the order given.
An ID is a run's id, the beginning of one that no other run shares, or a name.",
    operands: &[ANY_IDS],
    sections: &[
        BY_LABEL,
        Section {
            heading: "Waiting",
            options: &[Opt::with("timeout", "D", Kind::Duration, "give up after this time")],
        },
        Section { heading: "Telling", options: &[JSON] },
    ],
    statuses: Some(&Statuses {
        usual: "that of the first run given that has failed, as `run` gives it.",
        special: &[
            ("0", "all of them succeeded"),
            ("124", "not all of them had ended when the time was over"),
            ("125", "there is no such run, or it was removed"),
        ],
    }),
    ..BARE
};

/// What an order to end runs can come to.
pub(super) const STOP_STATUSES: Option<&Statuses> = Some(&Statuses {
    usual: "0 once every run meant is proven to be over.",
    special: &[
        ("120", "one is stuck, may live on or was released: nothing is proven of it"),
        ("120", "with --all or a group: a run lives that is not listed"),
        ("125", "one could not be found or asked"),
    ],
});

const STOP_USAGE: &str = "[options] ID…|--all|--group G|--label K=V";
const CHOOSING: Section = Section {
    heading: "Choosing",
    options: &[
        Opt::flag("all", "every run there is"),
        Opt::with("group", "G", Kind::Group, "every run of this group"),
        LABEL,
    ],
};
const WAITING: Section = Section {
    heading: "Waiting",
    options: &[Opt::flag("no-wait", "ask, and return at once; nothing is proven then")],
};
const TELLING: Section = Section {
    heading: "Telling",
    options: &[JSON, Opt::flag("quiet", "say nothing but errors").short('q')],
};

static STOP: Command = Command {
    path: &["stop"],
    does: "stop runs, each by its ladder, and wait for the proof",
    usage: STOP_USAGE,
    about: ABOUT_IDS,
    operands: &[ANY_IDS],
    sections: &[
        CHOOSING,
        Section {
            heading: "Stopping",
            options: &[Opt::with(
                "within",
                "D",
                Kind::Duration,
                "cut the ladder short: what lives after this is killed",
            )],
        },
        WAITING,
        TELLING,
    ],
    statuses: STOP_STATUSES,
    ..BARE
};

static KILL: Command = Command {
    path: &["kill"],
    does: "kill runs at once, and wait for the proof",
    usage: STOP_USAGE,
    about: ABOUT_IDS,
    operands: &[ANY_IDS],
    sections: &[CHOOSING, WAITING, TELLING],
    statuses: STOP_STATUSES,
    ..BARE
};

static SIGNAL: Command = Command {
    path: &["signal"],
    does: "send a signal to the leader of each run",
    usage: "[options] SIGNAL ID…|--label K=V",
    about: ABOUT_IDS,
    operands: &[
        Operand::new("SIGNAL", Kind::Signal, Count::One, "which signal? give its name"),
        ANY_IDS,
    ],
    sections: &[BY_LABEL, Section { heading: "Telling", options: &[JSON] }],
    ..BARE
};

static RM: Command = Command {
    path: &["rm"],
    does: "forget runs that have ended",
    usage: "[options] ID…",
    about: ABOUT_IDS,
    operands: &[IDS],
    sections: &[
        Section { heading: "Choosing", options: &[FORGET] },
        Section { heading: "Telling", options: &[JSON] },
    ],
    ..BARE
};

static PRUNE: Command = Command {
    path: &["prune"],
    does: "forget old runs that have ended",
    usage: "[options]",
    sections: &[
        Section {
            heading: "Choosing",
            options: &[
                Opt::with("older", "D", Kind::Duration, "only what ended longer ago than this"),
                Opt::with("keep", "N", Kind::Number, "keep the latest so many"),
                FORGET,
                DRY_RUN,
            ],
        },
        Section { heading: "Telling", options: &[JSON] },
    ],
    statuses: Some(&Statuses {
        usual: "0 if all of them are gone.",
        special: &[("125", "something could not be removed: it is named")],
    }),
    ..BARE
};

static SWEEP: Command = Command {
    path: &["sweep"],
    does: "end what is left of runs whose keeper and guard are gone",
    usage: "[options]",
    about: "\
What cannot be told from a stranger is left alone, and said. A run that lives and
is not listed is named.",
    sections: &[
        Section { heading: "Choosing", options: &[DRY_RUN] },
        Section { heading: "Telling", options: &[JSON] },
    ],
    statuses: Some(&Statuses {
        usual: "0 if nothing is left that belongs here.",
        special: &[
            ("120", "processes may live: of a run that is stuck, left alone or not listed"),
            ("125", "the runs cannot be listed"),
        ],
    }),
    ..BARE
};

static DOCTOR: Command = Command {
    path: &["doctor"],
    does: "say what this machine offers, and what it lacks",
    usage: "[options]",
    about: "\
Green is as it should be, yellow works and could be better, red breaks a promise.
The exit status is 1 if anything is red.",
    sections: ONLY_JSON,
    ..BARE
};

static DEMO: Command =
    Command { path: &["demo"], does: "a hostile little tree, shown, stopped, proven dead", ..BARE };

static COMPLETIONS: Command = Command {
    path: &["completions"],
    does: "print the completions for a shell",
    usage: "bash|zsh|fish",
    about: "\
bash:  source <(fullstop completions bash)
zsh:   source <(fullstop completions zsh)
fish:  fullstop completions fish | source",
    operands: &[Operand::new(
        "SHELL",
        Kind::Words(&["bash", "zsh", "fish"]),
        Count::One,
        "which shell? bash, zsh or fish",
    )],
    ..BARE
};

static MAN: Command = Command {
    path: &["man"],
    does: "print a man page",
    usage: "[COMMAND]|--dir DIR",
    about: "To read one at once: fullstop man run | man -l -",
    operands: &[PAGE],
    sections: &[Section {
        heading: "Writing",
        options: &[Opt::with("dir", "DIR", Kind::Directory, "write all pages there")],
    }],
    ..BARE
};

static HELP_COMMAND: Command = Command {
    path: &["help"],
    does: "show help for a command",
    usage: "[COMMAND]",
    operands: &[PAGE],
    ..BARE
};
