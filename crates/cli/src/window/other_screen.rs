//! Whether what was shown has left a terminal on its other screen.

const ESCAPE: u8 = 0x1b;
/// The modes that switch to it and back.
const MODES: [u32; 3] = [47, 1047, 1049];

#[derive(Debug, Default)]
pub struct OtherScreen {
    is_shown: bool,
    sequence: Sequence,
}

/// How much of a control sequence has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sequence {
    #[default]
    None,
    Escape,
    Bracket,
    /// Of private modes: the one that is being read, and whether one before it was ours.
    Modes {
        mode: u32,
        found: bool,
    },
}

impl OtherScreen {
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// The terminal was written this.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.sequence == Sequence::None {
                let Some(at) = bytes.iter().position(|byte| *byte == ESCAPE) else { return };
                bytes = &bytes[at..];
            }
            self.step(bytes[0]);
            bytes = &bytes[1..];
        }
    }

    fn step(&mut self, byte: u8) {
        self.sequence = match (self.sequence, byte) {
            (_, ESCAPE) => Sequence::Escape,
            (Sequence::Escape, b'[') => Sequence::Bracket,
            // A reset.
            (Sequence::Escape, b'c') => {
                self.is_shown = false;
                Sequence::None
            }
            (Sequence::Bracket, b'?') => Sequence::Modes { mode: 0, found: false },
            (Sequence::Modes { mode, found }, b'0'..=b'9') => {
                let mode = mode.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
                Sequence::Modes { mode, found }
            }
            (Sequence::Modes { mode, found }, b';') => {
                Sequence::Modes { mode: 0, found: found || MODES.contains(&mode) }
            }
            (Sequence::Modes { mode, found }, b'h' | b'l') => {
                if found || MODES.contains(&mode) {
                    self.is_shown = byte == b'h';
                }
                Sequence::None
            }
            _ => Sequence::None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_from_its_beginning_to_its_end() {
        for (written, shown) in [
            (&b"text, and \x1b[1;31mcolours"[..], false),
            (b"\x1b[?1049h", true),
            (b"\x1b[?1049h\x1b[2Jtext", true),
            (b"\x1b[?25l\x1b[?1;1049;2004h", true),
            (b"\x1b[?47h\x1b[?25h", true),
            (b"\x1b[?1047h\x1b[?1047l", false),
            (b"\x1b[?1049h\x1b[?1049l\x1b[?25h", false),
            (b"\x1b[?1049h\x1bc", false),
            (b"\x1b[1049h \x1b[?10490h \x1b[?99999999999h ?1049h \x1b[?1049m", false),
            (b"\x1b[?10\x1b[?1049h", true),
        ] {
            let mut whole = OtherScreen::default();
            whole.pass(written);
            assert_eq!(whole.is_shown(), shown, "{}", written.escape_ascii());
            let mut torn = OtherScreen::default();
            for byte in written {
                torn.pass(&[*byte]);
            }
            assert_eq!(torn.is_shown(), shown, "{} in pieces", written.escape_ascii());
        }
    }
}
