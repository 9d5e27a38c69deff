//! `logs`.

use super::table::{ABOUT_IDS, ID, JSON};
use super::{BARE, Command, Kind, Opt, Section};

pub(super) static LOGS: Command = Command {
    path: &["logs"],
    does: "show what a run has written",
    usage: "[options] ID",
    about: ABOUT_IDS,
    operands: &[ID],
    sections: &[
        Section {
            heading: "Choosing",
            options: &[
                Opt::with("lines", "N", Kind::Number, "only the last so many lines").short('n'),
                Opt::with("since", "T", Kind::Time, "only what came then or later").more(
                    ": 10m ago, 11:00, 2026-11-16 or 2026-11-16T11:00:00Z, in UTC as -t shows it",
                ),
                Opt::with(
                    "stream",
                    "STREAM",
                    Kind::Words(&["out", "err", "tty"]),
                    "only stdout, stderr or the terminal",
                ),
            ],
        },
        Section {
            heading: "Telling",
            options: &[
                Opt::flag("follow", "stay until the run is over, and show what comes").short('f'),
                Opt::flag("times", "when each line came, and to which stream").short('t'),
                Opt::flag("raw", "the bytes as they are").more(
                    "; else escape sequences and control characters are removed, for they act on \
                     the terminal that shows them",
                ),
                JSON,
            ],
        },
    ],
    ..BARE
};
