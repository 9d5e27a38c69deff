//! Output for people and programs: quiet, aligned, coloured only on a terminal.

use crate::fail::{Fail, complain};
use crate::prepare::survive_broken_pipes;
use fullstop::Exit;
use serde::Serialize;
use std::fmt::{Display, Write as _};
use std::io::{IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn print(text: &str) -> Result<(), Fail> {
    let mut stdout = std::io::stdout().lock();
    Ok(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?)
}

/// As [`print()`], where the reader may be gone, and must not take us along.
pub fn try_print(text: &str) -> Result<(), Fail> {
    survive_broken_pipes();
    print(text)
}

/// Tells what was done: on stderr, if stdout takes nothing. The status is that of the deed.
pub fn tell(text: &str) {
    if let Err(fail) = try_print(text) {
        complain(format!("{}; {}", fail.why, text.trim_end()));
    }
}

/// As [`tell`], one value on one line.
pub fn tell_json(value: &impl Serialize) {
    match json_line(value) {
        Ok(line) => tell(&line),
        Err(fail) => complain(fail.why),
    }
}

/// Each on a line of its own.
pub fn lines(all: impl IntoIterator<Item = impl Display>) -> Result<(), Fail> {
    let mut text = String::new();
    for one in all {
        let _ = writeln!(text, "{one}");
    }
    print(&text)
}

/// One value, on one line.
pub fn json(value: &impl Serialize) -> Result<(), Fail> {
    print(&json_line(value)?)
}

pub fn json_line(value: &impl Serialize) -> Result<String, Fail> {
    let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

#[derive(Clone, Copy)]
pub enum Colour {
    Green,
    Yellow,
    Red,
}

/// The text in a colour, if stdout shows colours.
pub fn coloured(text: &str, colour: Colour) -> String {
    static SHOWN: OnceLock<bool> = OnceLock::new();
    let is_shown = || {
        std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
            && std::io::stdout().is_terminal()
    };
    if !SHOWN.get_or_init(is_shown) {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// How wide the terminal of stdout is; nothing, where there is none.
pub fn width() -> Option<usize> {
    width_of(std::io::stdout())
}

pub fn width_of(terminal: impl AsFd + IsTerminal) -> Option<usize> {
    if !terminal.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// How many lines the terminal of stdout has; nothing, where there is none.
pub fn height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|height| *height > 0)
}

pub fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Unknown => "unknown".to_owned(),
    }
}

pub fn unix_ms() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix.as_millis()).unwrap_or_default()
}
