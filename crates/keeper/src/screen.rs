//! A terminal's screen as it is now, for windows that come later.
//!
//! The model is fed with whatever an agent writes, so it must not be able to hold up
//! its keeper: it is fed in slices, and what has no time now waits.

use fullstop_cage::linux::now;
use fullstop_protocol::Size;
use std::fmt::Write as _;
use std::num::NonZeroU16;
use std::time::Duration;
use vt100::{Callbacks, Parser, Screen as Model};

/// How much is fed before the clock is looked at. Two bytes can order a reset, which
/// takes twenty milliseconds on the largest screen; a look costs nothing beside a byte.
const SLICE: usize = 4;
/// How long a turn may take: a few bytes can order a million characters.
const TURN: Duration = Duration::from_millis(20);
/// What a program writes before a title, and a bell behind it.
const TITLE: &[u8] = b"\x1b]2;";
/// No bar is this long. The parser's own limit is gone where another crate has it so.
const LONGEST_TITLE: usize = 1024;

pub struct Screen {
    parser: Parser<Beside>,
    unfed: Vec<u8>,
    size: Size,
}

/// What a terminal has beside its screen.
#[derive(Default)]
struct Beside {
    /// What it answers to a program that asks it.
    answers: String,
    /// What it was called by a program; the model keeps none.
    title: Vec<u8>,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Screen({})", self.size)
    }
}

impl Screen {
    pub fn new(size: Size) -> Screen {
        let (rows, cols) = parts(size);
        let parser = Parser::new_with_callbacks(rows, cols, 0, Beside::default());
        Screen { parser, unfed: Vec::new(), size }
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// Whether it has not caught up; then nothing more should be read.
    pub fn is_behind(&self) -> bool {
        !self.unfed.is_empty()
    }

    /// How much it has to catch up with.
    pub fn unfed(&self) -> usize {
        self.unfed.len()
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.unfed.extend_from_slice(bytes);
        self.catch_up();
    }

    pub fn catch_up(&mut self) {
        let until = now() + TURN;
        let mut fed = 0;
        for slice in self.unfed.chunks(SLICE) {
            self.parser.process(slice);
            fed += slice.len();
            if now() >= until {
                break;
            }
        }
        self.unfed.drain(..fed);
    }

    /// What was asked of the terminal since the last time, answered.
    pub fn answers(&mut self) -> String {
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    pub fn resize(&mut self, size: Size) {
        if size != self.size {
            let (rows, cols) = parts(size);
            self.parser.set_size(rows, cols);
            self.size = size;
        }
    }

    /// What turns any terminal of this size into this one, with what was not drawn yet.
    pub fn shown(&self) -> Vec<u8> {
        let model = self.parser.screen();
        let screen = if model.alternate_screen() { "\x1b[?1049h" } else { "\x1b[?1049l" };
        let drawn = format!("{screen}\x1b[0m\x1b[H\x1b[2J{}", model.state_formatted());
        let title = &self.parser.callbacks().title;
        let title = if title.is_empty() { Vec::new() } else { [TITLE, title, b"\x07"].concat() };
        [drawn.as_bytes(), &title, &self.unfed].concat()
    }
}

fn parts(size: Size) -> (NonZeroU16, NonZeroU16) {
    let part = |length| NonZeroU16::new(length).unwrap_or(NonZeroU16::MIN);
    (part(size.rows), part(size.cols))
}

impl Callbacks for Beside {
    fn set_window_title(&mut self, _: &mut Model, title: &[u8]) {
        self.title = title[..title.len().min(LONGEST_TITLE)].to_vec();
    }

    /// The questions that programs wait for an answer to: is it well, where is the
    /// cursor, what kind of terminal is it. The answers are those of a VT100 with
    /// colours, which promises nothing.
    fn unhandled_csi(
        &mut self,
        screen: &mut Model,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let asked = params.first().and_then(|param| param.first()).copied().unwrap_or_default();
        let _ = match (first, second, asked, last) {
            (None, None, 5, 'n') => self.answers.write_str("\x1b[0n"),
            (None, None, 6, 'n') => {
                let (row, col) = screen.cursor_position();
                write!(self.answers, "\x1b[{};{}R", row + 1, col + 1)
            }
            (None, None, 0, 'c') => self.answers.write_str("\x1b[?1;2c"),
            (Some(b'>'), None, 0, 'c') => self.answers.write_str("\x1b[>0;0;0c"),
            _ => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Size = Size { rows: 5, cols: 20 };

    fn text(screen: &Screen) -> String {
        screen.parser.screen().contents()
    }

    #[test]
    fn a_later_window_sees_the_same() {
        let mut screen = Screen::new(SMALL);
        screen.feed(b"one\r\n\x1b[31mtwo\x1b[0m\x1b[?1049h\x1b[2;3Hfull \x1b[1mscreen\x1b[?25l");
        let mut window = Screen::new(SMALL);
        window.feed(b"whatever was there before");
        window.feed(&screen.shown());
        assert_eq!(text(&window), text(&screen));
        let (one, other) = (screen.parser.screen(), window.parser.screen());
        assert_eq!(one.cursor_position(), other.cursor_position());
        assert!(other.alternate_screen() && other.hide_cursor());
    }

    #[test]
    fn a_later_window_sees_the_title_too() {
        let mut screen = Screen::new(SMALL);
        assert!(!screen.shown().windows(TITLE.len()).any(|part| part == TITLE));
        screen.feed(b"\x1b]0;one\x07\x1b]2;two \xc3\xbc\x1b\\text");
        let mut window = Screen::new(SMALL);
        window.feed(&screen.shown());
        assert_eq!(window.parser.callbacks().title, "two \u{fc}".as_bytes());
        assert_eq!(text(&window), "text");
    }

    #[test]
    fn questions_are_answered_once() {
        let mut screen = Screen::new(SMALL);
        screen.feed(b"ab\x1b[6n\x1b[5n\x1b[c\x1b[>c");
        assert_eq!(screen.answers(), "\x1b[1;3R\x1b[0n\x1b[?1;2c\x1b[>0;0;0c");
        assert_eq!(screen.answers(), "");
    }

    #[test]
    fn a_costly_screen_does_not_hold_up_its_keeper() {
        let mut screen = Screen::new(Size::LARGEST);
        screen.feed(&b"\x1b[65535b\x1b[2J\x1b[65535b".repeat(20_000));
        assert!(screen.is_behind(), "all of it was fed at once");
    }

    #[test]
    fn what_is_not_drawn_yet_is_not_missing() {
        let mut screen = Screen::new(Size::LARGEST);
        screen.feed(&[&b"\x1bc".repeat(1000)[..], b"the end"].concat());
        assert!(screen.is_behind(), "all of it was fed at once");
        assert!(screen.shown().ends_with(b"the end"));
    }

    #[test]
    fn neither_does_the_shortest_costly_order() {
        let resets = b"\x1bc".repeat(1000);
        let mut screen = Screen::new(Size::LARGEST);
        screen.feed(&resets);
        let fed = resets.len() - screen.unfed.len();
        assert!(fed < 200, "{fed} bytes were fed in one turn");
    }

    /// Pieces of real sequences, which chance alone would rarely make.
    fn output() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![
            any::<Vec<u8>>(),
            "\\PC{0,12}".prop_map(String::into_bytes),
            (any::<[u16; 2]>(), prop::sample::select(b"ABCDEFGHJKLMPSTX`bdfmnrtchlu@q".to_vec()))
                .prop_map(|([a, b], last)| {
                    let mut text = format!("\x1b[{};{}", a % 300, b % 300).into_bytes();
                    text.push(last);
                    text
                }),
            (prop::sample::select(vec![1, 6, 7, 25, 47, 1000, 1049, 2004]), any::<bool>())
                .prop_map(|(mode, set)| {
                    format!("\x1b[?{mode}{}", if set { 'h' } else { 'l' }).into_bytes()
                }),
            prop::sample::select(vec!["\x1bM", "\x1bD", "\x1bc", "\x1b7", "\x1b8", "\t", "\x08"])
                .prop_map(|text| text.as_bytes().to_vec()),
        ];
        prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        /// A panic here would be the end of a run: whatever comes, the model stands,
        /// and its picture can be drawn.
        #[test]
        fn nothing_an_agent_writes_breaks_it(
            pieces in prop::collection::vec((output(), 1_u16..40, 1_u16..120), 1..8),
        ) {
            let mut screen = Screen::new(SMALL);
            for (bytes, rows, cols) in pieces {
                screen.feed(&bytes);
                screen.resize(Size { rows, cols });
                while screen.is_behind() {
                    screen.catch_up();
                }
                let mut again = Screen::new(screen.size());
                again.feed(&screen.shown());
            }
        }
    }
}
