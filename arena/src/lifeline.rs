//! The line from a driver to the test run that opened its world. One JSON value
//! a line; its end tells the driver that the test run is gone.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};

use crate::{Context, Failure, Outcome};

/// How much of a failure's first line is said.
const SAID: usize = 300;

/// What a driver says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The busy part is over.
    OnlyWaits,
    /// The scenario failed. All that was to be seen is in the log.
    Failed(Failure),
}

pub(crate) struct Lifeline(UnixStream);

impl Lifeline {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    pub(crate) fn try_clone(&self) -> Outcome<Self> {
        self.0.try_clone().map(Self).context("lifeline")
    }

    pub(crate) fn say(&self, word: &Word) {
        // When nobody is there to hear it, the world is about to end anyway.
        if let Ok(line) = serde_json::to_string(word) {
            let _ = writeln!(&self.0, "{line}");
        }
    }

    /// Says why the scenario failed, in so few words that nobody need read them yet.
    pub(crate) fn say_failed(&self, failure: &Failure) {
        let text = failure.text.lines().next().unwrap_or_default();
        let text = text.chars().take(SAID).collect();
        self.say(&Word::Failed(Failure { text, missed: failure.missed }));
    }

    /// Waits until the other side has gone.
    pub(crate) fn wait_for_its_end(&self) {
        let _ = (&self.0).read(&mut [0; 1]);
    }
}

/// What a driver that has ended said in its life.
pub(crate) fn words_of(mut line: &UnixStream) -> Vec<Word> {
    let mut text = Vec::new();
    // Should anybody still hold the other end, there is no end of file.
    if line.set_nonblocking(true).is_ok() {
        let _ = line.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Missed, millis};

    #[test]
    fn words_arrive_though_the_end_is_held() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let driver = Lifeline::new(theirs);
        let missed = Some(Missed { bound: millis(3), from: millis(1), to: millis(5) });
        driver.say(&Word::OnlyWaits);
        driver.say_failed(&Failure { text: "two\nlines".into(), missed });
        let failed = Word::Failed(Failure { text: "two".into(), missed });
        assert_eq!(words_of(&ours), [Word::OnlyWaits, failed]);
    }
}
