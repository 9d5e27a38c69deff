//! A window: a command of `fullstop` on a driven terminal, and what a person in
//! front of it sees.

use std::num::NonZeroU16;

use arena::{Context, Deadline, Ended, Outcome, Spawned, World, ensure};
use rustix::termios::{LocalModes, SpecialCodeIndex, Termios};
use vt100::{MouseProtocolMode, Parser, Screen};

use crate::shell::on_terminal;
use crate::tty::{PATIENCE, Tty};

/// Two times Ctrl-\.
pub const DETACH: &str = "\x1c\x1c";

/// No terminal has this key for Ctrl-Z by itself, so whoever puts the usual settings
/// in place of those it found is seen.
const UNUSUAL_SUSPEND: u8 = 0x19;

/// How many rows and columns.
pub type Size = (u16, u16);

pub const USUAL: Size = (24, 80);

pub struct Window {
    pub tty: Tty,
    pub spawned: Spawned,
    screen: Parser,
    /// How much of what came was looked at.
    fed: usize,
    /// The settings as they were found.
    found: String,
}

impl Window {
    /// Starts `fullstop` with these words on a new terminal of this size.
    pub fn open(world: &mut World, size: Size, words: &[&str]) -> Outcome<Self> {
        let mut found = Tty::open(world)?.settings()?;
        found.special_codes[SpecialCodeIndex::VSUSP] = UNUSUAL_SUSPEND;
        let (rows, columns) = size;
        let prepare = format!("stty rows {rows} cols {columns} susp ^Y; exec fullstop \"$@\"");
        let mut all = vec!["sh", "-c", &prepare, "sh"];
        all.extend(words);
        let label = format!("window {}", words.join(" "));
        let (tty, spawned) = on_terminal(world, &label, &all, |_| {})?;
        let screen = Parser::new(number(rows), number(columns), 0);
        Ok(Self { tty, spawned, screen, fed: 0, found: said(&found) })
    }

    /// One that listens: from now on what is typed is the run's.
    pub fn opened(world: &mut World, size: Size, words: &[&str]) -> Outcome<Self> {
        let mut window = Self::open(world, size, words)?;
        window.await_taken()?;
        Ok(window)
    }

    /// Waits until the window has taken its terminal. Nothing is read meanwhile.
    pub fn await_taken(&mut self) -> Outcome {
        let deadline = Deadline::after(PATIENCE);
        let wanted = LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHO;
        while self.tty.settings()?.local_modes.intersects(wanted) {
            ensure!(deadline.stands(), "the window does not take its terminal");
            std::thread::sleep(arena::millis(2));
        }
        Ok(())
    }

    pub fn resize(&mut self, (rows, columns): Size) -> Outcome {
        self.look();
        self.screen.set_size(number(rows), number(columns));
        self.tty.resize(rows, columns)
    }

    pub fn types(&self, keys: &str) -> Outcome {
        self.tty.type_keys(keys)
    }

    /// The screen as it is now, as far as it has come.
    pub fn look(&mut self) -> &Screen {
        let bytes = self.tty.bytes();
        self.screen.process(&bytes[self.fed..]);
        self.fed = bytes.len();
        self.screen.screen()
    }

    /// Waits until the screen is as wanted.
    pub fn until(&mut self, what: &str, mut wanted: impl FnMut(&Screen) -> bool) -> Outcome {
        let deadline = Deadline::after(PATIENCE);
        loop {
            if wanted(self.look()) {
                return Ok(());
            }
            if deadline.passed() {
                let shown = self.look().contents();
                let who = self.tty.describe();
                return Err(deadline
                    .missed(format!("the screen does not show: {what}; but\n{shown}\n{who}")));
            }
            self.tty.breathe();
        }
    }

    /// Waits until this is somewhere on the screen.
    pub fn shows(&mut self, text: &str) -> Outcome {
        self.until(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the screen is the same as this one.
    pub fn is_like(&mut self, other: &Screen) -> Outcome {
        self.until(&picture(other), |screen| picture(screen) == picture(other))
    }

    /// Waits for the end of the window, reading its screen.
    pub fn ended(&mut self, world: &World) -> Outcome<Ended> {
        let spawned = self.spawned.clone();
        self.tty.until("the window ends", || world.ended(&spawned).is_some())?;
        world.ended(&spawned).context("it has ended")
    }

    pub fn ends(&mut self, world: &World, wanted: Ended) -> Outcome {
        let ended = self.ended(world)?;
        ensure!(
            ended == wanted,
            "the window ended with {ended}, and not {wanted}:\n{}",
            self.look().contents()
        );
        Ok(())
    }

    /// The terminal is as it was found: its settings, and whatever a program may have
    /// switched on.
    pub fn expect_given_back(&mut self) -> Outcome {
        let now = said(&self.tty.settings()?);
        ensure!(now == self.found, "the settings were\n{}\nand are\n{now}", self.found);
        self.until("an unchanged terminal", |screen| {
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && !screen.application_cursor()
                && screen.mouse_protocol_mode() == MouseProtocolMode::None
        })
    }
}

/// A terminal of this size that was written these bytes.
pub fn model(size: Size, bytes: &[u8]) -> Parser {
    let mut model = Parser::new(number(size.0), number(size.1), 0);
    model.process(bytes);
    model
}

/// All that can be seen.
fn picture(screen: &Screen) -> String {
    format!(
        "{:?} {:?} alternate {} hidden {}",
        screen.contents_formatted(),
        screen.cursor_position(),
        screen.alternate_screen(),
        screen.hide_cursor()
    )
}

fn number(length: u16) -> NonZeroU16 {
    NonZeroU16::new(length).unwrap_or(NonZeroU16::MIN)
}

fn said(settings: &Termios) -> String {
    format!("{settings:?}")
}
