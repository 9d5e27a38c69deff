//! What can be said to fullstop, as static data: `run` must not pay for it.

mod group;
mod logs;
mod opt;
mod run;
mod send;
mod table;

pub use opt::{Kind, Opt, Value};
pub use table::FULLSTOP;

/// One command, or fullstop itself at the root.
#[derive(Debug)]
pub struct Command {
    /// The words that call it; none at the root.
    pub path: &'static [&'static str],
    /// What it does, in one line.
    pub does: &'static str,
    /// What follows the path in the usage line.
    pub usage: &'static str,
    /// What a reader should know before the options.
    pub about: &'static str,
    pub operands: &'static [Operand],
    pub sections: &'static [Section],
    /// The commands below this one.
    pub chapters: &'static [Chapter],
    /// Exit statuses that mean something.
    pub statuses: Option<&'static Statuses>,
}

/// Options under one heading.
#[derive(Debug)]
pub struct Section {
    pub heading: &'static str,
    pub options: &'static [Opt],
}

/// Commands under one heading.
#[derive(Debug)]
pub struct Chapter {
    pub heading: &'static str,
    pub commands: &'static [&'static Command],
}

#[derive(Debug)]
pub struct Statuses {
    pub usual: &'static str,
    pub special: &'static [(&'static str, &'static str)],
}

/// A word that is no option.
#[derive(Debug)]
pub struct Operand {
    pub name: &'static str,
    pub kind: Kind,
    pub count: Count,
    /// What to say when there is none.
    pub missing: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    One,
    /// One or more.
    Some,
    /// None or more.
    Any,
}

/// Understood after every command, so it stands in no table.
pub static HELP: Opt = Opt::flag("help", "show help").short('h');

/// What durations look like, said wherever one can be given.
pub const DURATIONS: &str = "500ms, 3s, 1m30s, 2h. A bare number counts seconds.";

/// So that a command only says what it has.
const BARE: Command = Command {
    path: &[],
    does: "",
    usage: "",
    about: "",
    operands: &[],
    sections: &[],
    chapters: &[],
    statuses: None,
};

impl Command {
    /// As it is typed: `fullstop group stop`.
    pub fn title(&self) -> String {
        self.joined(" ")
    }

    /// Its words with something between them: `fullstop-group-stop`.
    pub fn joined(&self, between: &str) -> String {
        let mut name = "fullstop".to_owned();
        for word in self.path {
            name.push_str(between);
            name.push_str(word);
        }
        name
    }

    /// The last of its words.
    pub fn name(&self) -> &'static str {
        self.path.last().copied().unwrap_or("fullstop")
    }

    /// What it does, with a capital and a full stop.
    pub fn sentence(&self) -> String {
        let mut letters = self.does.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).chain(['.']).collect()
    }

    /// Its own options; [`HELP`] is everybody's.
    pub fn options(&self) -> impl Iterator<Item = &'static Opt> + use<> {
        self.sections.iter().flat_map(|section| section.options)
    }

    /// The commands directly below.
    pub fn commands(&self) -> impl Iterator<Item = &'static Command> + use<> {
        self.chapters.iter().flat_map(|chapter| chapter.commands).copied()
    }

    /// The command below that is called so.
    pub fn below(&self, word: &std::ffi::OsStr) -> Option<&'static Command> {
        self.commands().find(|command| word == command.name())
    }

    /// Itself and all below, parents first.
    pub fn all(&'static self) -> Vec<&'static Command> {
        let mut all = vec![self];
        all.extend(self.commands().flat_map(Command::all));
        all
    }

    /// Whether its operands are another program's command line.
    pub fn runs_a_program(&self) -> bool {
        self.operands.first().is_some_and(|operand| operand.kind == Kind::Program)
    }

    /// Whether a duration can be given to it.
    pub fn takes_durations(&self) -> bool {
        self.options().any(|option| option.kind() == Some(Kind::Duration))
    }
}

impl Operand {
    const fn new(name: &'static str, kind: Kind, count: Count, missing: &'static str) -> Operand {
        Operand { name, kind, count, missing }
    }

    pub fn is_required(&self) -> bool {
        matches!(self.count, Count::One | Count::Some)
    }

    pub fn repeats(&self) -> bool {
        matches!(self.count, Count::Some | Count::Any)
    }
}
