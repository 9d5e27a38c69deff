//! The keys that leave a window without ending what it shows.
//!
//! What might be the beginning of them is held back until the next key tells. If
//! none comes within [`HELD_FOR`] it is passed on, so that a command that wants a
//! Ctrl-\ of its own gets it: pressed once, and a moment waited.

use std::str::FromStr;
use std::time::Duration;

/// Twice the same key is pressed faster than this, and who waits for the effect of
/// one waits no longer.
pub const HELD_FOR: Duration = Duration::from_secs(1);

/// No hand types more.
const MOST_KEYS: usize = 16;

/// The keys that detach, in their order; none at all, if they are switched off.
///
/// ```
/// use fullstop_cli::detach::Keys;
///
/// let keys: Keys = "ctrl-p,ctrl-q".parse()?;
/// assert_eq!(keys.bytes(), [0x10, 0x11]);
/// assert_eq!(Keys::default(), r"ctrl-\,ctrl-\".parse()?);
/// assert!("none".parse::<Keys>()?.bytes().is_empty());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(Vec<u8>);

impl Keys {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Default for Keys {
    fn default() -> Keys {
        Keys(vec![0x1c, 0x1c])
    }
}

impl FromStr for Keys {
    type Err = String;

    /// As docker writes them: `ctrl-p,ctrl-q`, or single characters.
    fn from_str(text: &str) -> Result<Keys, String> {
        if text == "none" {
            return Ok(Keys(Vec::new()));
        }
        let keys: Vec<u8> = text.split(',').map(key).collect::<Result<_, _>>()?;
        if keys.len() > MOST_KEYS {
            return Err(format!("{text:?} has more than {MOST_KEYS} keys"));
        }
        Ok(Keys(keys))
    }
}

fn key(name: &str) -> Result<u8, String> {
    let no_key = || format!("{name:?} is no key: ctrl-a to ctrl-z, ctrl-@[\\]^_, or a character");
    let letter = name.get(..5).filter(|start| start.eq_ignore_ascii_case("ctrl-"));
    match (letter, name.as_bytes()) {
        (None, [byte @ b'!'..=b'~']) => Ok(*byte),
        (Some(_), [.., letter]) if name.len() == 6 => match letter.to_ascii_uppercase() {
            letter @ b'@'..=b'_' => Ok(letter & 0x1f),
            _ => Err(no_key()),
        },
        _ => Err(no_key()),
    }
}

/// Watches what is typed for the keys that detach.
///
/// ```
/// use fullstop_cli::detach::{Keys, Detach};
///
/// let mut detach = Detach::new(&Keys::default());
/// assert_eq!(detach.feed(b"ls\r\x1c"), (b"ls\r".to_vec(), false));
/// assert_eq!(detach.feed(b"x"), (b"\x1cx".to_vec(), false), "it was meant for the command");
/// assert_eq!(detach.feed(b"\x1c\x1c"), (Vec::new(), true));
/// ```
#[derive(Debug)]
pub struct Detach {
    keys: Vec<u8>,
    /// For each number of keys seen: how many of the last of them begin the keys
    /// anew, if the next one does not fit.
    again: Vec<usize>,
    /// How many of the keys are held back.
    held: usize,
}

impl Detach {
    pub fn new(keys: &Keys) -> Detach {
        let keys = keys.0.clone();
        Detach { again: beginnings(&keys), keys, held: 0 }
    }

    /// Nothing detaches.
    pub fn none() -> Detach {
        Detach::new(&Keys(Vec::new()))
    }

    /// What is to be passed on, and whether the keys were complete. What was typed
    /// behind them goes nowhere: whoever typed it has left.
    pub fn feed(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        if self.keys.is_empty() {
            return (typed.to_vec(), false);
        }
        let mut passed = Vec::with_capacity(typed.len() + self.held);
        for &byte in typed {
            while self.held > 0 && self.keys[self.held] != byte {
                let kept = self.again[self.held];
                passed.extend_from_slice(&self.keys[..self.held - kept]);
                self.held = kept;
            }
            if self.keys[self.held] != byte {
                passed.push(byte);
                continue;
            }
            self.held += 1;
            if self.held == self.keys.len() {
                self.held = 0;
                return (passed, true);
            }
        }
        (passed, false)
    }

    /// Whether something is held back.
    pub fn holds(&self) -> bool {
        self.held > 0
    }

    /// Gives up waiting for the rest of the keys.
    pub fn release(&mut self) -> Vec<u8> {
        self.keys[..std::mem::take(&mut self.held)].to_vec()
    }
}

/// The length of the longest beginning of the keys that is also an end of their
/// first so many, and shorter than those.
fn beginnings(keys: &[u8]) -> Vec<usize> {
    let longest = |seen: usize| {
        (0..seen).rev().find(|&short| keys[..short] == keys[seen - short..seen]).unwrap_or(0)
    };
    (0..=keys.len()).map(longest).collect()
}
