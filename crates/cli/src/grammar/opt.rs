//! One option, and what kind of value it takes.

#[derive(Debug)]
pub struct Opt {
    pub short: Option<char>,
    pub long: &'static str,
    /// None for a flag.
    pub value: Option<Value>,
    /// A few words: all that a completion has room for.
    pub brief: &'static str,
    /// The rest of the explanation, put right behind the brief one.
    pub more: &'static str,
    /// It may be given again, and each counts.
    pub repeats: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// How usage lines call it.
    pub name: &'static str,
    pub kind: Kind,
}

/// What a value is, which is what a shell can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anything; nothing to offer.
    Text,
    Number,
    Duration,
    /// A point in time, or how long ago that was.
    Time,
    Ladder,
    File,
    Directory,
    /// One of these.
    Words(&'static [&'static str]),
    /// A known agent, `auto` or `none`.
    Agent,
    /// The name of an environment variable.
    Variable,
    /// `NAME=VALUE`.
    Assignment,
    /// An amount of bytes.
    Bytes,
    /// `latest`, `smallest` or `ROWSxCOLS`.
    Size,
    /// `null`, `inherit`, `pipe` or a file.
    Stdin,
    /// `NAME=FILE`.
    NamedFile,
    /// A key of a keyboard.
    Key,
    /// Text of a line, `tcp:PORT` or `file:PATH`.
    Ready,
    /// Keys, as docker writes them: `ctrl-p,ctrl-q`, or `none`.
    Keys,
    /// A run, by id, by the beginning of one, or by name.
    Run,
    Group,
    Signal,
    /// A program to run; everything behind is its own.
    Program,
    /// A command of fullstop's.
    Page,
}

impl Opt {
    pub(super) const fn flag(long: &'static str, brief: &'static str) -> Opt {
        Opt { short: None, long, value: None, brief, more: "", repeats: false }
    }

    pub(super) const fn with(
        long: &'static str,
        name: &'static str,
        kind: Kind,
        brief: &'static str,
    ) -> Opt {
        let value = Some(Value { name, kind });
        Opt { short: None, long, value, brief, more: "", repeats: false }
    }

    pub(super) const fn short(mut self, short: char) -> Opt {
        self.short = Some(short);
        self
    }

    pub(super) const fn more(mut self, more: &'static str) -> Opt {
        self.more = more;
        self
    }

    pub(super) const fn repeats(mut self) -> Opt {
        self.repeats = true;
        self
    }

    pub fn kind(&self) -> Option<Kind> {
        self.value.map(|value| value.kind)
    }

    /// As it stands in a list: `-q, --quiet`, `--cwd DIR`.
    pub fn shown(&self) -> String {
        let short = self.short.map(|short| format!("-{short}, ")).unwrap_or_default();
        let value = self.value.map(|value| format!(" {}", value.name)).unwrap_or_default();
        format!("{short}--{}{value}", self.long)
    }

    /// As it is typed: `-q` and `--quiet`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let short = self.short.map(|short| format!("-{short}"));
        short.into_iter().chain([format!("--{}", self.long)])
    }

    /// The whole explanation.
    pub fn text(&self) -> String {
        format!("{}{}", self.brief, self.more)
    }
}
