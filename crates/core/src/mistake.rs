//! A mistake in a text, told to a person in one line.

use std::fmt;

/// What is wrong in a text, and where.
pub(crate) struct Mistake<'a> {
    text: &'a str,
    position: usize,
    problem: &'a str,
}

impl<'a> Mistake<'a> {
    pub(crate) fn new(text: &'a str, position: usize, problem: &'a str) -> Mistake<'a> {
        Mistake { text, position, problem }
    }

    /// `what: problem at column N: text`. The text comes last, because it may be long.
    pub(crate) fn write(&self, what: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.position).unwrap_or(self.text);
        let column = before.chars().count() + 1;
        write!(f, "{what}: {} at column {column}: ", self.problem)?;
        // One sign for one sign keeps the column true; a line break would make two lines of one.
        let visible = |c: char| {
            if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
        };
        self.text.chars().map(visible).try_for_each(|c| fmt::Write::write_char(f, c))
    }
}
