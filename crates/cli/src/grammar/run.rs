//! `run` and `start`: the same options, but for what a terminal is for.

use super::{BARE, Command, Count, Kind, Operand, Opt, Section, Statuses};

const COMMAND: &[Operand] =
    &[Operand::new("COMMAND", Kind::Program, Count::One, "no command to run")];

pub static RUN: Command = Command {
    path: &["run"],
    does: "run a command in front, and leave nothing behind",
    usage: "[options] [--] COMMAND [ARGS…]",
    about: "\
Behaves like COMMAND: its stdio, its terminal, its exit status. INT, TERM, HUP
or QUIT sent to it stop the whole tree; when it returns, nothing is left.",
    operands: COMMAND,
    sections: &[
        Section {
            heading: "Stopping",
            options: &[
                LADDER,
                GRACE,
                AGENT,
                ON_EXIT,
                ON_HOST_EXIT.more(" (default: stop, but ignore on a terminal and under nohup)"),
                CAGE,
            ],
        },
        Section {
            heading: "Clocks",
            options: &[
                TIMEOUT,
                NO_OUTPUT_TIMEOUT.more("; implies --log, which is to be given on a terminal"),
                IDLE_TIMEOUT,
            ],
        },
        Section { heading: "Output", options: &[LOG, LOG_MAX, DRAIN_QUIET, DRAIN_MAX] },
        Section { heading: TERMINAL, options: &[PTY, SIZE, DETACH_KEYS] },
        Section { heading: INPUT, options: &[STDIN, SECRET_FD] },
        ENVIRONMENT,
        Section {
            heading: "Telling",
            options: &[
                NAME,
                GROUP,
                LABEL,
                REPORT.more(" (- is stdout)"),
                Opt::flag("quiet", "say nothing but errors").short('q'),
                Opt::flag("verbose", "say each step").short('v'),
            ],
        },
    ],
    statuses: Some(&Statuses {
        usual: "COMMAND's own; if it died of a signal, so does this (137 for KILL).",
        special: &[
            ("120", "stuck: something could not be killed (it is named)"),
            ("124", "timed out"),
            ("125", "fullstop failed"),
            ("126", "cannot execute COMMAND"),
            ("127", "COMMAND not found"),
        ],
    }),
    ..BARE
};

pub static START: Command = Command {
    path: &["start"],
    does: "run a command in the background, and tell its id",
    usage: "[options] [--] COMMAND [ARGS…]",
    about: "\
Returns as soon as COMMAND runs, or is ready, and prints the id of the run.
COMMAND goes on until it exits or is stopped.",
    operands: COMMAND,
    sections: &[
        Section {
            heading: "Waiting",
            options: &[
                Opt::with("wait-ready", "WHAT", Kind::Ready, "return only when it is ready").more(
                    ": tcp:PORT accepts, file:PATH exists, or a line of output has WHAT in it",
                ),
                Opt::with("start-timeout", "D", Kind::Duration, "how long to wait for that")
                    .more(" (default: 30s); when over, the run is stopped and start fails"),
            ],
        },
        Section { heading: "Stopping", options: &[LADDER, GRACE, AGENT, ON_EXIT, CAGE] },
        Section { heading: "Clocks", options: &[TIMEOUT, NO_OUTPUT_TIMEOUT, IDLE_TIMEOUT] },
        Section { heading: "Output", options: &[LOG_MAX, DRAIN_QUIET, DRAIN_MAX] },
        Section { heading: TERMINAL, options: &[PTY, SIZE] },
        Section { heading: INPUT, options: &[STDIN, SECRET_FD, KEEP_FD] },
        ENVIRONMENT,
        Section { heading: "Telling", options: &[NAME, GROUP, LABEL, REPORT, super::table::JSON] },
    ],
    ..BARE
};

const LADDER: Opt = Opt::with("ladder", "L", Kind::Ladder, "the steps of a stop").more(
    " (default: term@leader:3s,term@tree:2s,kill)\n\
     step: SIGNAL, close-stdin or input:\"TEXT\", with @leader, @group or @tree, \
     and :PATIENCE; the last step is always kill",
);
const GRACE: Opt =
    Opt::with("grace", "D", Kind::Duration, "the usual ladder, scaled to this total")
        .more(" (0: kill at once)");
const AGENT: Opt = Opt::with("agent", "NAME", Kind::Agent, "the ladder of a known agent")
    .more("; auto (default) goes by COMMAND, none by nothing");
const ON_EXIT: Opt = Opt::with(
    "on-exit",
    "WHAT",
    Kind::Words(&["stop", "wait", "release"]),
    "when COMMAND exits and others live",
)
.more(": stop (default), wait, release");
const ON_HOST_EXIT: Opt = Opt::with(
    "on-host-exit",
    "WHAT",
    Kind::Words(&["stop", "ignore"]),
    "when whoever started this dies: stop or ignore",
);
const CAGE: Opt =
    Opt::with("cage", "KIND", Kind::Words(&["auto", "cgroup", "tree"]), "what holds the tree")
        .more(": auto (default), cgroup, or tree");

const TIMEOUT: Opt = Opt::with("timeout", "D", Kind::Duration, "stop after this time");
const NO_OUTPUT_TIMEOUT: Opt =
    Opt::with("no-output-timeout", "D", Kind::Duration, "stop after this time without output");
const IDLE_TIMEOUT: Opt =
    Opt::with("idle-timeout", "D", Kind::Duration, "stop after this time without output")
        .more(" and without any work of the processor");

const LOG: Opt = Opt::flag("log", "write stdout and stderr to the run's logs as well");
const LOG_MAX: Opt = Opt::with("log-max", "SIZE", Kind::Bytes, "keep so much of each log")
    .more(", its head and its tail: 64KB, 64MB, 1GB");
const DRAIN_QUIET: Opt = Opt::with(
    "drain-quiet",
    "D",
    Kind::Duration,
    "output that others hold open is closed after this silence",
)
.more(" (default: 500ms)");
const DRAIN_MAX: Opt =
    Opt::with("drain-max", "D", Kind::Duration, "and after this time in any case")
        .more(" (default: 4s)");

const TERMINAL: &str = "Terminal";
const PTY: Opt = Opt::flag("pty", "give it a terminal of its own");
const SIZE: Opt = Opt::with("size", "SIZE", Kind::Size, "the size of that")
    .more(": latest (default) or smallest of its windows, or always ROWSxCOLS");
pub(super) const DETACH_KEYS: Opt =
    Opt::with("detach-keys", "KEYS", Kind::Keys, "what leaves the window").more(
        ": keys such as ctrl-p,ctrl-q (default: ctrl-\\,ctrl-\\), or none\n\
         the first of them reaches COMMAND with the next key, or after a second",
    );

const INPUT: &str = "Input";
const STDIN: Opt = Opt::with("stdin", "WHAT", Kind::Stdin, "where it reads from")
    .more(": null, inherit, pipe (what others send), or a file");
const SECRET_FD: Opt =
    Opt::with("secret-fd", "NAME=FILE", Kind::NamedFile, "hand over what is in FILE")
        .more(" on a descriptor, whose number is in the variable NAME")
        .repeats();
const KEEP_FD: Opt = Opt::with("keep-fd", "N", Kind::Number, "leave this descriptor open for it")
    .more("; all others of yours from 3 on are closed. Such a run cannot be restarted")
    .repeats();

const ENVIRONMENT: Section = Section {
    heading: "Environment",
    options: &[
        Opt::with("cwd", "DIR", Kind::Directory, "run COMMAND there"),
        Opt::with("env", "K=V", Kind::Assignment, "set a variable")
            .more(" (for secrets see --secret-fd)")
            .repeats(),
        Opt::with("unset-env", "K", Kind::Variable, "remove one").repeats(),
        Opt::flag("clear-env", "start from an empty environment"),
    ],
};

const NAME: Opt = Opt::with("name", "N", Kind::Text, "a name for the run");
const GROUP: Opt = Opt::with("group", "G", Kind::Group, "join this group: plan/research");
const LABEL: Opt =
    Opt::with("label", "K=V", Kind::Assignment, "a label, to find it among others").repeats();
const REPORT: Opt = Opt::with("report", "FILE", Kind::File, "write a JSON report there at the end");
