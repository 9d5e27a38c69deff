//! `send` and `close-stdin`: input for runs that others talk to.

use super::table::{ABOUT_IDS, ID, JSON, ONLY_JSON};
use super::{BARE, Command, Count, Kind, Operand, Opt, Section};

const TEXT: Operand = Operand::new("TEXT", Kind::Text, Count::Any, "");

pub static SEND: Command = Command {
    path: &["send"],
    does: "send text and keys to a run",
    usage: "[options] ID [TEXT…]",
    about: "\
The run must have been started with --stdin pipe or --pty. Texts are joined by
spaces, - is whatever stdin has; then come the keys, in their order.",
    operands: &[ID, TEXT],
    sections: &[
        Section {
            heading: "Keys",
            options: &[
                Opt::with("key", "KEY", Kind::Key, "a key")
                    .more(": Enter, Up, F1, C-c, M-x")
                    .repeats(),
                Opt::flag("enter", "as --key Enter").repeats(),
            ],
        },
        Section {
            heading: "Waiting",
            options: &[Opt::with("timeout", "D", Kind::Duration, "give up on a command")
                .more(" that does not read for so long (default: 5s)")],
        },
        Section { heading: "Telling", options: &[JSON] },
    ],
    ..BARE
};

pub static CLOSE_STDIN: Command = Command {
    path: &["close-stdin"],
    does: "end the input of a run",
    usage: "[options] ID",
    about: ABOUT_IDS,
    operands: &[ID],
    sections: ONLY_JSON,
    ..BARE
};
