//! An agent's output as plain text: what it says, and nothing that it does to a terminal.

use vte::{Parser, Perform};

/// A control sequence that is longer than this is none. Whoever was cut short within one
/// must not hide all that comes behind it.
const LONGEST: usize = 64 * 1024;

/// Removes escape sequences and control characters from one stream, however it is cut
/// into pieces.
///
/// ```
/// use fullstop_cli::plain::Plain;
///
/// let (mut plain, mut text) = (Plain::default(), String::new());
/// plain.add(b"\x1b[31mred\x1b[0m, and 50%\r100%\r\n", &mut text);
/// assert_eq!(text, "red, and 50%\n100%\n");
/// ```
#[derive(Default)]
pub struct Plain {
    parser: Parser,
    page: Page,
    /// How many bytes came since the parser had anything to say.
    swallowed: usize,
}

#[derive(Default)]
struct Page {
    text: String,
    /// Something stands on the current line.
    is_begun: bool,
    /// A carriage return, which may be half of a newline.
    returned: bool,
    /// Something came of what was said last.
    heard: bool,
}

impl Plain {
    /// Adds what is plain of these bytes to a text.
    pub fn add(&mut self, bytes: &[u8], text: &mut String) {
        std::mem::swap(&mut self.page.text, text);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            for chunk in line.chunks(LONGEST) {
                self.advance(chunk);
            }
        }
        std::mem::swap(&mut self.page.text, text);
    }

    fn advance(&mut self, chunk: &[u8]) {
        let newline = chunk.last() == Some(&b'\n');
        self.page.heard = false;
        self.parser.advance(&mut self.page, &chunk[..chunk.len() - usize::from(newline)]);
        self.swallowed = if self.page.heard { 0 } else { self.swallowed + chunk.len() };
        if newline {
            self.page.heard = false;
            self.parser.advance(&mut self.page, b"\n");
            // No sequence goes over a newline; what lacks its end was torn.
            if !self.page.heard {
                self.parser = Parser::new();
                self.page.execute(b'\n');
            }
        } else if self.swallowed >= LONGEST {
            self.parser = Parser::new();
            self.swallowed = 0;
        }
    }
}

impl Page {
    fn put(&mut self, letter: char) {
        if self.returned && self.is_begun {
            self.newline();
        }
        self.text.push(letter);
        (self.is_begun, self.returned) = (true, false);
    }

    fn newline(&mut self) {
        self.text.push('\n');
        (self.is_begun, self.returned) = (false, false);
    }
}

/// What is not seen, and changes what is: directions of text, invisible letters, tags,
/// breaks that only some know. What joins the parts of one sign is none of these.
fn is_hidden(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}'
            | '\u{200b}'..='\u{200c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Text of others for one line of ours: nothing in it acts on a terminal.
pub fn line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() || is_hidden(letter), " ")
}

impl Perform for Page {
    fn print(&mut self, letter: char) {
        self.heard = true;
        if !letter.is_control() && !is_hidden(letter) {
            self.put(letter);
        }
    }

    fn execute(&mut self, byte: u8) {
        self.heard = true;
        match byte {
            b'\n' => self.newline(),
            b'\r' => self.returned = true,
            b'\t' => self.put('\t'),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> String {
        let (mut plain, mut text) = (Plain::default(), String::new());
        plain.add(bytes, &mut text);
        let (mut by_byte, mut again) = (Plain::default(), String::new());
        for byte in bytes {
            by_byte.add(&[*byte], &mut again);
        }
        assert_eq!(text, again, "in one piece and in many");
        text
    }

    #[test]
    fn what_is_said_stays_and_what_is_done_goes() {
        let table: [(&[u8], &str); 14] = [
            (b"a\tb\n", "a\tb\n"),
            ("Gr\u{fc}\u{df}e \u{1f600}\n".as_bytes(), "Gr\u{fc}\u{df}e \u{1f600}\n"),
            (b"\x1b[1;31mred\x1b[m\x1b[2K\x1b[10A", "red"),
            (b"\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink"),
            (b"\x1bPq#0~~\x1b\\after\x1b_Gf=32;AAAA\x1b\\", "after"),
            (b"one\r\ntwo\r\r\n", "one\ntwo\n"),
            (b"10%\r20%\r\x1b[K30%\n", "10%\n20%\n30%\n"),
            (b"\rat the beginning\n", "at the beginning\n"),
            (b"bell\x07 back\x08 del\x7f null\x00", "bell back del null"),
            ("c1 \u{9b}31m \u{85}".as_bytes(), "c1 31m "),
            ("\u{202e}evil\u{2066}".as_bytes(), "evil"),
            (b"\xff and \xc3(", "\u{fffd} and \u{fffd}("),
            (b"torn \x1b]0;never ended\nnext\n", "torn \nnext\n"),
            (b"torn \xf0\x9f\n", "torn \u{fffd}\n"),
        ];
        for (bytes, text) in table {
            assert_eq!(plain(bytes), text, "{}", String::from_utf8_lossy(bytes).escape_debug());
        }
    }

    #[test]
    fn what_never_ends_hides_only_so_much() {
        let mut bytes = b"\x1b]0;".to_vec();
        bytes.resize(3 * LONGEST, b'x');
        assert!(plain(&bytes).len() >= LONGEST);
    }
}
