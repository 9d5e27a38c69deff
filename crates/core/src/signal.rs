//! Signals by name and number, as Linux counts them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A signal by its Linux number, 1 to 64.
///
/// ```
/// use fullstop_core::signal::Signal;
///
/// assert_eq!("SIGTERM".parse(), Ok(Signal::TERM));
/// assert_eq!(Signal::TERM.to_string(), "term");
/// assert_eq!("rtmin+3".parse::<Signal>()?.number(), 37);
/// # Ok::<(), fullstop_core::signal::SignalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signal(u8);

/// The highest signal number, and the last real-time signal.
const MAX: u8 = 64;

/// The first real-time signal a program may use: the C library keeps 32 and 33 to itself.
const RTMIN: u8 = 34;

/// One line per classic signal makes the constant and the table of names, so that they agree.
macro_rules! signals {
    ($($upper:ident $lower:literal = $number:literal;)*) => {
        impl Signal {
            $(
                #[doc = concat!("Signal ", stringify!($number), ", `", $lower, "`.")]
                pub const $upper: Signal = Signal($number);
            )*
        }
        const NAMES: &[(&str, u8)] = &[$(($lower, $number)),*];
    };
}

signals! {
    HUP "hup" = 1;
    INT "int" = 2;
    QUIT "quit" = 3;
    ILL "ill" = 4;
    TRAP "trap" = 5;
    ABRT "abrt" = 6;
    BUS "bus" = 7;
    FPE "fpe" = 8;
    KILL "kill" = 9;
    USR1 "usr1" = 10;
    SEGV "segv" = 11;
    USR2 "usr2" = 12;
    PIPE "pipe" = 13;
    ALRM "alrm" = 14;
    TERM "term" = 15;
    STKFLT "stkflt" = 16;
    CHLD "chld" = 17;
    CONT "cont" = 18;
    STOP "stop" = 19;
    TSTP "tstp" = 20;
    TTIN "ttin" = 21;
    TTOU "ttou" = 22;
    URG "urg" = 23;
    XCPU "xcpu" = 24;
    XFSZ "xfsz" = 25;
    VTALRM "vtalrm" = 26;
    PROF "prof" = 27;
    WINCH "winch" = 28;
    IO "io" = 29;
    PWR "pwr" = 30;
    SYS "sys" = 31;
}

/// Second names that people and `kill -l` of other systems use.
const ALIASES: &[(&str, u8)] = &[("iot", 6), ("cld", 17), ("poll", 29)];

impl Signal {
    /// The signal of that number, if there is one.
    pub const fn new(number: i32) -> Option<Signal> {
        if number < 1 || number > MAX as i32 {
            return None;
        }
        // The range was checked above, so nothing is cut off.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(Signal(number as u8))
    }

    /// The number the kernel knows it by.
    pub const fn number(self) -> i32 {
        self.0 as i32
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None if self.0 == RTMIN => f.write_str("rtmin"),
            None if self.0 > RTMIN => write!(f, "rtmin+{}", self.0 - RTMIN),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The text names no signal.
///
/// ```
/// use fullstop_core::signal::{Signal, SignalError};
///
/// let error: SignalError = "sigh".parse::<Signal>().unwrap_err();
/// assert!(error.to_string().contains("sigh"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalError {
    text: String,
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown signal {:?}", self.text)
    }
}

impl std::error::Error for SignalError {}

impl FromStr for Signal {
    type Err = SignalError;

    /// Takes a name with or without `SIG`, in either case, or a number.
    fn from_str(text: &str) -> Result<Signal, SignalError> {
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_prefix("sig").unwrap_or(&lower);
        let classic = || {
            let mut known = NAMES.iter().chain(ALIASES);
            known.find(|(known, _)| *known == name).map(|(_, number)| Signal(*number))
        };
        classic()
            .or_else(|| real_time(name))
            .or_else(|| digits(&lower).and_then(|number| Signal::new(number.into())))
            .ok_or_else(|| SignalError { text: text.to_owned() })
    }
}

fn real_time(name: &str) -> Option<Signal> {
    let number = if let Some(offset) = name.strip_prefix("rtmin") {
        match offset.strip_prefix('+') {
            Some(offset) => RTMIN.checked_add(digits(offset)?)?,
            None if offset.is_empty() => RTMIN,
            None => return None,
        }
    } else {
        let offset = name.strip_prefix("rtmax")?;
        match offset.strip_prefix('-') {
            Some(offset) => MAX.checked_sub(digits(offset)?)?,
            None if offset.is_empty() => MAX,
            None => return None,
        }
    };
    (RTMIN..=MAX).contains(&number).then_some(Signal(number))
}

/// `str::parse` alone would also take `+3`.
fn digits(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl TryFrom<String> for Signal {
    type Error = SignalError;

    fn try_from(text: String) -> Result<Signal, SignalError> {
        text.parse()
    }
}

impl From<Signal> for String {
    fn from(signal: Signal) -> String {
        signal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_in_every_spelling_and_numbers() {
        let table = [
            ("TERM", 15),
            ("term", 15),
            ("SIGTERM", 15),
            ("sigterm", 15),
            ("SigTerm", 15),
            ("15", 15),
            ("1", 1),
            ("64", 64),
            ("32", 32),
            ("kill", 9),
            ("CLD", 17),
            ("SIGIOT", 6),
            ("poll", 29),
            ("RTMIN", 34),
            ("rtmin+3", 37),
            ("SIGRTMIN+30", 64),
            ("RTMAX", 64),
            ("RTMAX-1", 63),
            ("rtmax-30", 34),
        ];
        for (text, number) in table {
            assert_eq!(text.parse().map(Signal::number), Ok(number), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_signal() {
        let table = [
            "",
            "tern",
            "sig",
            "sigsigterm",
            "sig15",
            "0",
            "65",
            "-1",
            "+15",
            "015x",
            "256",
            "300",
            "rtmin+31",
            "rtmin-1",
            "rtmin+",
            "rtmin++1",
            "rtmax-31",
            "rtmax+1",
            "rtmin 3",
            "term ",
            "tërm",
        ];
        for text in table {
            assert!(text.parse::<Signal>().is_err(), "{text}");
        }
        let error = "tern".parse::<Signal>().unwrap_err();
        assert_eq!(error.to_string(), "unknown signal \"tern\"");
    }

    #[test]
    fn every_number_has_a_name_that_reads_back() {
        for number in 1..=64 {
            let signal = Signal::new(number).unwrap();
            let name = signal.to_string();
            assert_eq!(name.parse(), Ok(signal));
            assert_eq!(name, name.to_lowercase());
            let json = serde_json::to_string(&signal).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Signal>(&json).unwrap(), signal);
        }
        assert_eq!(Signal::new(37).unwrap().to_string(), "rtmin+3");
        for number in [i32::MIN, -1, 0, 65, 256 + 15, i32::MAX] {
            assert_eq!(Signal::new(number), None);
        }
    }
}
