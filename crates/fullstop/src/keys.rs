//! Keys by the names that people and tmux give them, as the bytes a terminal sends.

use std::fmt::Write as _;
use std::str::FromStr;

/// Each with its other names behind it.
const NAMED: &[(&[&str], &str)] = &[
    (&["Enter", "Return"], ENTER),
    (&["Tab"], "\t"),
    (&["Escape", "Esc"], ESC),
    (&["Space"], " "),
    (&["Backspace", "BSpace"], "\x7f"),
    (&["Delete", "Del", "DC"], "\x1b[3~"),
    (&["Insert", "Ins", "IC"], "\x1b[2~"),
    (&["Up"], "\x1b[A"),
    (&["Down"], "\x1b[B"),
    (&["Left"], "\x1b[D"),
    (&["Right"], "\x1b[C"),
    (&["Home"], "\x1b[H"),
    (&["End"], "\x1b[F"),
    (&["PageUp", "PgUp", "PPage"], "\x1b[5~"),
    (&["PageDown", "PgDn", "NPage"], "\x1b[6~"),
    (&["BackTab", "BTab", "S-Tab"], "\x1b[Z"),
    (&["F1"], "\x1bOP"),
    (&["F2"], "\x1bOQ"),
    (&["F3"], "\x1bOR"),
    (&["F4"], "\x1bOS"),
    (&["F5"], "\x1b[15~"),
    (&["F6"], "\x1b[17~"),
    (&["F7"], "\x1b[18~"),
    (&["F8"], "\x1b[19~"),
    (&["F9"], "\x1b[20~"),
    (&["F10"], "\x1b[21~"),
    (&["F11"], "\x1b[23~"),
    (&["F12"], "\x1b[24~"),
];

const ENTER: &str = "\r";
const ESC: &str = "\x1b";
const CONTROL: &[&str] = &["C-", "Ctrl-", "Ctrl+", "^"];
const ALT: &[&str] = &["M-", "Alt-", "Alt+"];

/// A key of a keyboard.
///
/// ```
/// use fullstop::Key;
///
/// let interrupt: Key = "C-c".parse()?;
/// assert_eq!(interrupt.typed(), b"\x03");
/// let enter: Key = "Enter".parse()?;
/// assert_eq!((enter.typed(), enter.piped()), (&b"\r"[..], &b"\n"[..]));
/// # Ok::<(), fullstop::InvalidKey>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

/// A name that no key has.
///
/// ```
/// use fullstop::Key;
///
/// let unknown = "Entr".parse::<Key>().unwrap_err();
/// assert_eq!((unknown.name(), unknown.code()), ("Entr", "invalid-key"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", unknown(name))]
pub struct InvalidKey {
    name: String,
}

impl InvalidKey {
    /// The name itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        "invalid-key"
    }
}

impl Key {
    /// The key that ends a line.
    pub fn enter() -> Key {
        Key(ENTER.to_owned())
    }

    /// What a terminal sends for it.
    pub fn typed(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// What it is for a command that reads from a pipe, where no terminal makes the
    /// end of a line out of Enter.
    pub fn piped(&self) -> &[u8] {
        if self.0 == ENTER { b"\n" } else { self.typed() }
    }

    /// The names of all keys that have one.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().filter_map(|(names, _)| names.first().copied())
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(name: &str) -> Result<Key, InvalidKey> {
        let key = match behind(name, ALT) {
            Some(rest) => bytes(rest).map(|bytes| format!("{ESC}{bytes}")),
            None => bytes(name),
        };
        key.map(Key).ok_or_else(|| InvalidKey { name: name.to_owned() })
    }
}

fn bytes(name: &str) -> Option<String> {
    if let Some(control) = behind(name, CONTROL).and_then(control) {
        return Some(char::from(control).to_string());
    }
    let known = |(names, _): &&(&[&str], &str)| names.iter().any(|n| n.eq_ignore_ascii_case(name));
    if let Some((_, bytes)) = NAMED.iter().find(known) {
        return Some((*bytes).to_owned());
    }
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if !letter.is_control() => Some(letter.to_string()),
        _ => None,
    }
}

/// Terminals send a letter with Ctrl as its place in the alphabet, and a few signs
/// around the alphabet in the same way.
fn control(key: &str) -> Option<u8> {
    match *key.as_bytes() {
        [b'?'] => Some(0x7f),
        [sign] if matches!(sign.to_ascii_uppercase(), b'@'..=b'_') => {
            Some(sign.to_ascii_uppercase() & 0x1f)
        }
        _ if key.eq_ignore_ascii_case("space") => Some(0),
        _ => None,
    }
}

/// What follows one of these.
fn behind<'n>(name: &'n str, prefixes: &[&str]) -> Option<&'n str> {
    prefixes.iter().find_map(|prefix| {
        let (head, rest) = name.split_at_checked(prefix.len())?;
        (head.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
    })
}

fn unknown(name: &str) -> String {
    let mut why = format!("{name:?} is no key; there are ");
    for known in Key::names().filter(|known| !known.starts_with('F')) {
        let _ = write!(why, "{known}, ");
    }
    why + "F1 to F12, C-x, M-x, and single letters"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str) -> String {
        let key: Key = name.parse().unwrap_or_else(|why| panic!("{why}"));
        String::from_utf8(key.typed().to_vec()).expect("text")
    }

    #[test]
    fn keys_have_the_names_that_people_give_them() {
        let table = [
            (&["Enter", "enter", "Return", "C-m"][..], "\r"),
            (&["Tab", "C-i", "Ctrl-I"], "\t"),
            (&["Escape", "Esc", "^["], "\x1b"),
            (&["C-c", "C-C", "Ctrl-C", "ctrl+c", "^C", "^c"], "\x03"),
            (&["C-Space", "C-@"], "\0"),
            (&["^\\", "C-\\"], "\x1c"),
            (&["C-?", "Backspace", "BSpace"], "\x7f"),
            (&["M-x", "Alt-x", "alt+x"], "\x1bx"),
            (&["M-X"], "\x1bX"),
            (&["M-C-c", "Alt-^C"], "\x1b\x03"),
            (&["M-Enter"], "\x1b\r"),
            (&["PageUp", "PgUp", "PPage"], "\x1b[5~"),
            (&["F1"], "\x1bOP"),
            (&["f12"], "\x1b[24~"),
            (&["y"], "y"),
            (&["^"], "^"),
            (&["ü"], "ü"),
        ];
        for (names, bytes) in table {
            for name in names {
                assert_eq!(typed(name), bytes, "{name}");
            }
        }
    }

    #[test]
    fn every_name_is_known_and_of_its_own() {
        let mut all: Vec<_> = Key::names().map(typed).collect();
        let named = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), named);
    }

    #[test]
    fn what_is_no_key_gets_one_line_with_those_that_are() {
        for name in ["", "F13", "Entr", "C-", "M-", "C-Up", "C-é", "\n", "é́", "M-\u{7}"] {
            let why = name.parse::<Key>().expect_err(name).to_string();
            assert!(why.contains("Enter, Tab") && why.contains("F1 to F12"), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn only_enter_is_another_in_a_pipe() {
        for name in Key::names() {
            let key: Key = name.parse().expect(name);
            assert_eq!(key.typed() == key.piped(), name != "Enter", "{name}");
        }
    }
}
