//! A point in time, as people give it.

use fullstop::duration;
use std::time::Duration;

const DAY: u64 = 86_400;

/// Since when.
///
/// ```
/// use fullstop_cli::since::Since;
///
/// let since: Since = "2026-11-16T11:00:00Z".parse().unwrap();
/// assert_eq!(since.unix_ms(0), 1_794_826_800_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So long ago.
    Ago(Duration),
    /// Then, in milliseconds since 1970.
    At(u64),
    /// When it was last so late, in milliseconds since midnight.
    Clock(u64),
}

impl Since {
    /// Milliseconds since 1970, if it is now that late.
    pub fn unix_ms(self, now: u64) -> u64 {
        match self {
            Since::Ago(ago) => {
                now.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))
            }
            Since::At(at) => at,
            Since::Clock(time) => {
                let day = now / (DAY * 1000) * DAY * 1000;
                let today = day + time;
                if today <= now { today } else { today.saturating_sub(DAY * 1000) }
            }
        }
    }
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Since, String> {
        let bare = text.strip_suffix('Z').unwrap_or(text);
        let (date, time) = match bare.split_once(['T', ' ']) {
            Some((date, time)) => (Some(date), Some(time)),
            None if bare.contains(':') => (None, Some(bare)),
            None if bare.matches('-').count() == 2 => (Some(bare), None),
            None => {
                return duration::parse(text).map(Since::Ago).map_err(|_| wrong(text));
            }
        };
        let time = time.map_or(Some(0), clock).ok_or_else(|| wrong(text))?;
        let Some(date) = date else { return Ok(Since::Clock(time)) };
        let days = days(date).ok_or_else(|| wrong(text))?;
        Ok(Since::At(days * DAY * 1000 + time))
    }
}

fn wrong(text: &str) -> String {
    format!("{text:?} is no time: 10m (ago), 11:00, 2026-11-16 or 2026-11-16T11:00:00Z")
}

/// Digits and nothing else, where `parse` would take a sign.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// HH:MM, HH:MM:SS or HH:MM:SS.mmm, in milliseconds.
fn clock(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let parts: Option<Vec<u64>> = whole.split(':').map(number).collect();
    let (hour, minute, second) = match parts?[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    number(fraction)?;
    let millis = number(&format!("{fraction:0<3}")[..3])?;
    let fits = hour < 24 && minute < 60 && second < 60;
    fits.then_some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

/// The days from 1970 to a date, counted in years that begin in March, so that leap
/// days come last.
fn days(date: &str) -> Option<u64> {
    let parts: Option<Vec<u64>> = date.split('-').map(number).collect();
    let [year @ 1970..=9999, month @ 1..=12, day @ 1..=31] = parts?[..] else { return None };
    let shifted = (month + 9) % 12;
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstop::Timestamp;

    const NOON: u64 = 1_794_830_400_000;

    fn when(unix_ms: u64) -> String {
        Timestamp::from_unix_ms(unix_ms).to_string()
    }

    #[test]
    fn all_that_is_understood() {
        let table = [
            ("10m", "2026-11-16T11:50:00.000Z"),
            ("90", "2026-11-16T11:58:30.000Z"),
            ("11:00", "2026-11-16T11:00:00.000Z"),
            ("11:00:30.5", "2026-11-16T11:00:30.500Z"),
            ("12:00:01", "2026-11-15T12:00:01.000Z"),
            ("2026-11-16", "2026-11-16T00:00:00.000Z"),
            ("2024-02-29T23:59Z", "2024-02-29T23:59:00.000Z"),
            ("2026-11-16 01:02:03", "2026-11-16T01:02:03.000Z"),
            ("1970-01-01", "1970-01-01T00:00:00.000Z"),
        ];
        assert_eq!(when(NOON), "2026-11-16T12:00:00.000Z");
        for (text, then) in table {
            let since: Since = text.parse().unwrap();
            assert_eq!(when(since.unix_ms(NOON)), then, "{text}");
        }
    }

    #[test]
    fn a_date_is_what_it_is_printed_as() {
        for day in 0..50_000 {
            let date = when(day * DAY * 1000);
            assert_eq!(date.parse::<Since>().unwrap(), Since::At(day * DAY * 1000), "{date}");
        }
    }

    #[test]
    fn what_is_no_time() {
        let strange = [
            "",
            "soon",
            "25:00",
            "11:60",
            "11:00:61",
            "1:2:3:4",
            "2026-13-01",
            "2026-11-16T",
            "2026-11-00",
            "1969-12-31",
            "-5m",
            "11:+5",
            "2026-11-16T11:00:00.Z",
            "11:00:00.x",
        ];
        for text in strange {
            assert!(text.parse::<Since>().is_err(), "{text}");
        }
    }
}
