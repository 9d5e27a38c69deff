//! What a terminal shows: text, cells, cursor, title.

use crate::attach::{AttachOptions, WindowEvent};
use crate::error::{Error, Result};
use crate::run::Run;
use crate::stop::Silence;
use crate::window::Window;
use fullstop_protocol::Size;
use std::fmt;
use std::num::NonZeroU16;
use std::time::Duration;
use vt100::{Callbacks, Parser, Screen as Model};

/// How long a keeper may take for its screen, in time of its own.
const ANSWER: Duration = Duration::from_secs(1);
/// No bar is this long.
const LONGEST_TITLE: usize = 1024;

impl Run {
    /// The screen of its terminal as it is now. Nothing stays attached, and the terminal keeps
    /// its size. A run that is over, or stuck, is an error that has its report.
    ///
    /// If the future is dropped, nothing is left behind.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("fullstop-doc-look-{}", std::process::id()));
    /// # let runs = fullstop::Runs::at(&dir)?;
    /// use fullstop::{Command, Size, blocking};
    ///
    /// let size = Size { rows: 5, cols: 30 };
    /// let screen = blocking::wait(async {
    ///     let run = Command::new("sh").args(["-c", "echo ready; exec sleep 60"]).pty(size);
    ///     let run = run.runs(&runs).start().await?;
    ///     loop {
    ///         let screen = run.screen().await?;
    ///         if screen.text().contains("ready") {
    ///             run.kill().await?;
    ///             return Ok(screen);
    ///         }
    ///     }
    /// })?;
    /// assert_eq!((screen.size(), screen.rows().next()), (size, Some("ready".to_owned())));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn screen(&self) -> Result<Screen> {
        let options = AttachOptions { view: true, ..AttachOptions::default() };
        let mut window = Window::open(self, options).await?;
        let mut screen = Screen::new(Size::default());
        let keeper =
            || self.runs().store().last_record(self.id()).ok()?.keeper.map(|keeper| keeper.pid);
        let mut silence = Silence::of(keeper);
        loop {
            let shown = silence.wait_for(ANSWER, window.next()).await;
            let shown = shown.ok_or_else(|| Error::KeeperSilent { id: self.id().clone() })??;
            screen.show(&shown);
            match shown {
                WindowEvent::Screen(_) => return Ok(screen),
                WindowEvent::Over(report) => return Err(Error::Ended(report)),
                _ => {}
            }
        }
    }
}

/// The screen of a terminal, as a window has shown it so far.
///
/// It knows what most programs use: colours and attributes, wide characters, the other screen of
/// full-screen programs. There is no history of what was scrolled away: that is in the log.
///
/// A few bytes can cost much time, since they can clear the whole screen. If the screen is large
/// and the run may be hostile, feed it on a thread of its own.
///
/// ```
/// use fullstop::{Color, Screen, WindowEvent, Size};
///
/// let mut screen = Screen::new(Size { rows: 3, cols: 20 });
/// screen.show(&WindowEvent::Screen(b"\x1b[1;31mred\x1b[0m plain\r\n> ".to_vec()));
/// assert_eq!(screen.text(), "red plain\n> ");
/// assert_eq!((screen.cursor().row, screen.cursor().col), (1, 2));
/// let cell = screen.cell(0, 0).expect("inside");
/// assert_eq!((cell.text(), cell.foreground()), ("r", Color::Indexed(1)));
/// assert!(cell.is_bold() && !screen.is_alternate());
/// ```
pub struct Screen {
    parser: Parser<Title>,
}

/// What a program has called the terminal.
#[derive(Default)]
struct Title(String);

/// Where the cursor is, counted from 0, and whether it is shown.
///
/// ```
/// use fullstop::{CursorPosition, Screen, Size};
///
/// let screen = Screen::new(Size { rows: 3, cols: 20 });
/// assert_eq!(screen.cursor(), CursorPosition { row: 0, col: 0, is_visible: true });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorPosition {
    /// From the top.
    pub row: u16,
    /// From the left. Behind the last character of a full row it is the row's length.
    pub col: u16,
    /// Programs hide it while they draw.
    pub is_visible: bool,
}

/// A colour, as a program has asked for it. What it looks like is the terminal's business.
///
/// ```
/// use fullstop::{Color, Screen, Size};
///
/// let mut screen = Screen::new(Size { rows: 1, cols: 2 });
/// screen.write(b"\x1b[48;2;1;2;3mx");
/// assert_eq!(screen.cell(0, 0).map(|cell| cell.background()), Some(Color::Rgb(1, 2, 3)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Color {
    /// The terminal's own.
    #[default]
    Default,
    /// One of a palette of 256, of which the first 16 are the terminal's.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// One place of a [`Screen`]: what stands there, and how.
///
/// ```
/// use fullstop::{Screen, Size};
///
/// let mut screen = Screen::new(Size { rows: 1, cols: 4 });
/// screen.write("\x1b[4m語".as_bytes());
/// let (first, second) = (screen.cell(0, 0).unwrap(), screen.cell(0, 1).unwrap());
/// assert!(first.is_wide() && first.is_underlined() && second.is_continuation());
/// ```
#[derive(Clone, Copy)]
pub struct Cell<'a>(&'a vt100::Cell);

impl Screen {
    /// An empty one.
    pub fn new(size: Size) -> Screen {
        let (rows, cols) = parts(size);
        Screen { parser: Parser::new_with_callbacks(rows, cols, 0, Title::default()) }
    }

    /// Takes up what a window shows. The end of a run leaves it as it is.
    pub fn show(&mut self, shown: &WindowEvent) {
        match shown {
            WindowEvent::Resized(size) => self.resize(*size),
            WindowEvent::Screen(bytes) => {
                *self = Screen::new(self.size());
                self.write(bytes);
            }
            WindowEvent::Bytes(bytes) => self.write(bytes),
            WindowEvent::Over(_) => {}
        }
    }

    /// Takes up what a program writes to its terminal.
    pub fn write(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    /// Makes it as large as this; what does not fit any more is cut off.
    pub fn resize(&mut self, size: Size) {
        if size != self.size() {
            let (rows, cols) = parts(size);
            self.parser.set_size(rows, cols);
        }
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        let (rows, cols) = self.model().size();
        Size { rows: rows.get(), cols: cols.get() }
    }

    /// All rows as text, up to the last character that was written in each, and without empty
    /// rows at the end. A row that was too long for the screen, and goes on in the next one, is
    /// one line.
    pub fn text(&self) -> String {
        self.model().contents()
    }

    /// Each row of the screen as text, up to the last character that was written in it.
    pub fn rows(&self) -> impl Iterator<Item = String> + '_ {
        self.model().rows(0, self.size().cols)
    }

    /// What stands in this place; nothing, outside of the screen.
    pub fn cell(&self, row: u16, col: u16) -> Option<Cell<'_>> {
        self.model().cell(row, col).map(Cell)
    }

    /// Where the cursor is.
    pub fn cursor(&self) -> CursorPosition {
        let (row, col) = self.model().cursor_position();
        CursorPosition { row, col, is_visible: !self.model().hide_cursor() }
    }

    /// What a program has called the terminal; empty, if none has.
    pub fn title(&self) -> &str {
        &self.parser.callbacks().0
    }

    /// Whether the other screen is shown, which full-screen programs draw on.
    pub fn is_alternate(&self) -> bool {
        self.model().alternate_screen()
    }

    fn model(&self) -> &Model {
        self.parser.screen()
    }
}

impl<'a> Cell<'a> {
    /// The character, with the signs that combine with it; empty, if nothing was written there.
    pub fn text(&self) -> &'a str {
        self.0.contents()
    }

    /// The colour of the character.
    pub fn foreground(&self) -> Color {
        color(self.0.fgcolor())
    }

    /// The colour behind it.
    pub fn background(&self) -> Color {
        color(self.0.bgcolor())
    }

    /// Whether it is bold.
    pub fn is_bold(&self) -> bool {
        self.0.bold()
    }

    /// Whether it is faint.
    pub fn is_dim(&self) -> bool {
        self.0.dim()
    }

    /// Whether it is italic.
    pub fn is_italic(&self) -> bool {
        self.0.italic()
    }

    /// Whether it is underlined.
    pub fn is_underlined(&self) -> bool {
        self.0.underline()
    }

    /// Whether its two colours change places.
    pub fn is_inverse(&self) -> bool {
        self.0.inverse()
    }

    /// Whether its character takes this place and the next.
    pub fn is_wide(&self) -> bool {
        self.0.is_wide()
    }

    /// Whether it is the second place of a wide character.
    pub fn is_continuation(&self) -> bool {
        self.0.is_wide_continuation()
    }
}

fn parts(size: Size) -> (NonZeroU16, NonZeroU16) {
    let part = |length| NonZeroU16::new(length).unwrap_or(NonZeroU16::MIN);
    let Size { rows, cols } = size.clamped();
    (part(rows), part(cols))
}

// No `From`: what the model is made of is nobody's business.
fn color(color: vt100::Color) -> Color {
    match color {
        vt100::Color::Default => Color::Default,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

impl Callbacks for Title {
    fn set_window_title(&mut self, _: &mut Model, title: &[u8]) {
        let title = &title[..title.len().min(LONGEST_TITLE)];
        self.0 = String::from_utf8_lossy(title).into_owned();
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cell").field(&self.text()).finish()
    }
}
