//! Durations as people write them: `3s`, `500ms`, `1.5s`, `1m30s`, `2 min`.

use std::fmt;
use std::time::Duration;

use crate::mistake::Mistake;

/// A longer wait than this is a slip of the pen: a hundred years of 365 days.
pub const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

const MS: u128 = 1_000_000;
const S: u128 = 1_000 * MS;
const M: u128 = 60 * S;
const H: u128 = 60 * M;
const D: u128 = 24 * H;

/// The text is no duration. One line, with the position of the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    /// Where in the text the mistake is, in bytes.
    pub position: usize,
    text: String,
    problem: String,
}

impl DurationError {
    /// What is wrong, without the place.
    pub(crate) fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Mistake::new(&self.text, self.position, &self.problem).write("duration", f)
    }
}

impl std::error::Error for DurationError {}

/// Reads a duration. A bare number is in seconds, as for timeout(1); parts go from large to small
/// and may have spaces between them.
///
/// ```
/// use std::time::Duration;
/// use fullstop_core::duration;
///
/// assert_eq!(duration::parse("1m30s"), Ok(Duration::from_secs(90)));
/// assert_eq!(duration::parse("10"), Ok(Duration::from_secs(10)));
/// let mistake = duration::parse("3 parsecs").unwrap_err();
/// assert_eq!(mistake.to_string(), "duration: unknown unit \"parsecs\" at column 3: 3 parsecs");
/// ```
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut parts = Parts { text, at: 0, smallest: u128::MAX };
    let mut nanos: u128 = 0;
    parts.skip_spaces();
    if parts.rest().is_empty() {
        return Err(parts.mistake(0, "a duration is missing"));
    }
    while !parts.rest().is_empty() {
        let start = parts.at;
        // Each part is below 2^110 and there are no more parts than units, so this cannot overflow.
        nanos += parts.next()?;
        if nanos > LONGEST.as_nanos() {
            return Err(parts.mistake(start, "longer than a hundred years"));
        }
        parts.skip_spaces();
    }
    Ok(from_nanos(nanos))
}

fn from_nanos(nanos: u128) -> Duration {
    // Only called with durations of at most a hundred years, which are far below the limits.
    let seconds = u64::try_from(nanos / S).unwrap_or(u64::MAX);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(nanos % S).unwrap_or(0))
}

/// Reads number and unit, one pair after the other.
struct Parts<'a> {
    text: &'a str,
    at: usize,
    /// The unit of the part before, in nanoseconds; the largest number before the first part.
    smallest: u128,
}

impl<'a> Parts<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.take(char::is_whitespace);
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn mistake(&self, position: usize, problem: impl Into<String>) -> DurationError {
        DurationError { position, text: self.text.to_owned(), problem: problem.into() }
    }

    /// One part in nanoseconds.
    fn next(&mut self) -> Result<u128, DurationError> {
        let start = self.at;
        let whole = self.take(|c| c.is_ascii_digit());
        let fraction = if self.rest().starts_with('.') {
            self.at += 1;
            self.take(|c| c.is_ascii_digit())
        } else {
            ""
        };
        if whole.is_empty() && fraction.is_empty() {
            let negative = self.text[start..].starts_with('-');
            let problem =
                if negative { "a duration cannot be negative" } else { "a number is expected" };
            return Err(self.mistake(start, problem));
        }
        let unit = self.unit()?;
        scale(whole, fraction, unit)
            .ok_or_else(|| self.mistake(start, "longer than a hundred years"))
    }

    /// The unit that follows a number, in nanoseconds.
    fn unit(&mut self) -> Result<u128, DurationError> {
        let number_end = self.at;
        self.skip_spaces();
        let position = self.at;
        let unit = match self.take(|c| !c.is_whitespace() && !c.is_ascii_digit() && c != '.') {
            "" if self.smallest == u128::MAX && self.rest().is_empty() => S,
            "" => return Err(self.mistake(number_end, "a unit is missing")),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => MS,
            "s" | "sec" | "secs" | "second" | "seconds" => S,
            "m" | "min" | "mins" | "minute" | "minutes" => M,
            "h" | "hr" | "hrs" | "hour" | "hours" => H,
            "d" | "day" | "days" => D,
            unknown => return Err(self.mistake(position, format!("unknown unit {unknown:?}"))),
        };
        if unit >= self.smallest {
            return Err(self.mistake(position, "units go from large to small"));
        }
        self.smallest = unit;
        Ok(unit)
    }
}

/// `whole.fraction` units in nanoseconds; `None` when it is far too long. What is finer than a
/// nanosecond is cut off.
fn scale(whole: &str, fraction: &str, unit: u128) -> Option<u128> {
    // Eighteen digits are finer than any unit needs and keep the product within 128 bits.
    const DIGITS: usize = 18;
    let whole: u128 = match whole.trim_start_matches('0') {
        "" => 0,
        // Nineteen digits of nanoseconds are already three centuries.
        digits if digits.len() > DIGITS + 1 => return None,
        digits => digits.parse().ok()?,
    };
    let digits = &fraction[..fraction.len().min(DIGITS)];
    let power = 10_u128.pow(u32::try_from(digits.len()).ok()?);
    let digits: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(whole * unit + digits * unit / power)
}

/// Writes a duration in the shortest exact way that [`parse`] reads back.
///
/// ```
/// use std::time::Duration;
/// use fullstop_core::duration;
///
/// assert_eq!(duration::format(Duration::from_millis(500)), "500ms");
/// assert_eq!(duration::format(Duration::from_millis(90_500)), "1m30.5s");
/// ```
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < S {
        return decimal(nanos, MS) + "ms";
    }
    let days = (nanos / D, "d");
    let hours = (nanos % D / H, "h");
    let minutes = (nanos % H / M, "m");
    let mut text = String::new();
    for (count, unit) in [days, hours, minutes] {
        if count > 0 {
            text += &count.to_string();
            text += unit;
        }
    }
    let rest = nanos % M;
    if rest > 0 {
        text += &decimal(rest, S);
        text += "s";
    }
    text
}

/// `nanos / unit` as a decimal number without trailing zeros; `unit` is a power of ten.
fn decimal(nanos: u128, unit: u128) -> String {
    let whole = nanos / unit;
    let rest = nanos % unit;
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{rest:0width$}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let table: &[(&str, u128)] = &[
            ("0", 0),
            ("10", 10 * S),
            (" 10 ", 10 * S),
            ("1.5", S + 500 * MS),
            ("3s", 3 * S),
            ("3 s", 3 * S),
            ("500ms", 500 * MS),
            ("1.5s", S + 500 * MS),
            (".5s", 500 * MS),
            ("2.s", 2 * S),
            ("2m", 2 * M),
            ("1m30s", 90 * S),
            ("1m 30s", 90 * S),
            (" 1 min 30 secs ", 90 * S),
            ("1h", H),
            ("2d", 2 * D),
            ("1d2h3m4s5ms6us7ns", D + 2 * H + 3 * M + 4 * S + 5 * MS + 6_007),
            ("7µs", 7_000),
            ("000000000000000000000000000001s", S),
            ("0.0000000001s", 0),
            ("365d", 365 * D),
            ("365 days", 365 * D),
            ("8760h", 365 * D),
            ("31536000", 365 * D),
            ("36500d", LONGEST.as_nanos()),
        ];
        for (text, nanos) in table {
            assert_eq!(parse(text).map(|d| d.as_nanos()), Ok(*nanos), "{text:?}");
        }
    }

    #[test]
    fn points_at_the_mistake() {
        let table = [
            ("", "a duration is missing at column 1: "),
            ("  ", "a duration is missing at column 1:   "),
            ("-3s", "a duration cannot be negative at column 1: -3s"),
            ("-5", "a duration cannot be negative at column 1: -5"),
            (" -5s", "a duration cannot be negative at column 2:  -5s"),
            ("1m -5s", "a duration cannot be negative at column 4: 1m -5s"),
            ("NaN", "a number is expected at column 1: NaN"),
            ("inf", "a number is expected at column 1: inf"),
            ("s", "a number is expected at column 1: s"),
            (".", "a number is expected at column 1: ."),
            ("+3s", "a number is expected at column 1: +3s"),
            ("3x", "unknown unit \"x\" at column 2: 3x"),
            ("1e9", "unknown unit \"e\" at column 2: 1e9"),
            ("1e3s", "unknown unit \"e\" at column 2: 1e3s"),
            ("3S", "unknown unit \"S\" at column 2: 3S"),
            ("3s-1s", "unknown unit \"s-\" at column 2: 3s-1s"),
            ("1m30", "a unit is missing at column 5: 1m30"),
            ("10 20", "a unit is missing at column 3: 10 20"),
            ("1.2.3s", "a unit is missing at column 4: 1.2.3s"),
            ("30s1m", "units go from large to small at column 5: 30s1m"),
            ("1s1s", "units go from large to small at column 4: 1s1s"),
            ("36500d1ns", "longer than a hundred years at column 7: 36500d1ns"),
            (
                "99999999999999999999s",
                "longer than a hundred years at column 1: 99999999999999999999s",
            ),
            (
                "9999999999999999999.999999999999999999d",
                "longer than a hundred years at column 1: 9999999999999999999.999999999999999999d",
            ),
            (
                "18446744073709551616",
                "longer than a hundred years at column 1: 18446744073709551616",
            ),
            ("101000d", "longer than a hundred years at column 1: 101000d"),
            (
                "99999999999999999999999999999999999999999999s",
                "longer than a hundred years at column 1: 99999999999999999999999999999999999999999999s",
            ),
            ("3é", "unknown unit \"é\" at column 2: 3é"),
            ("3s\nx", "a number is expected at column 4: 3s\u{fffd}x"),
        ];
        for (text, message) in table {
            let told = parse(text).map_err(|mistake| mistake.to_string());
            assert_eq!(told, Err(format!("duration: {message}")), "{text:?}");
        }
    }

    #[test]
    fn writes_the_shortest_exact_text() {
        let table = [
            (0, "0s"),
            (1, "0.000001ms"),
            (300_000, "0.3ms"),
            (500 * MS, "500ms"),
            (S, "1s"),
            (3 * S, "3s"),
            (S + 500 * MS, "1.5s"),
            (S + 1, "1.000000001s"),
            (60 * S, "1m"),
            (90 * S, "1m30s"),
            (90 * S + 250 * MS, "1m30.25s"),
            (H, "1h"),
            (D + M, "1d1m"),
            (365 * D, "365d"),
            (365 * D + 6 * H, "365d6h"),
            (LONGEST.as_nanos(), "36500d"),
        ];
        for (nanos, text) in table {
            assert_eq!(format(from_nanos(nanos)), text);
        }
    }
}
