//! Figures and tables, fit to be read.

use std::time::Duration;

/// A length of time in one or two words: 3s, 5m, 2h, 4d.
pub fn age(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let seconds = ms / 1000;
    let unit = UNITS.iter().find(|(length, _)| seconds >= *length);
    unit.map_or(format!("{ms}ms"), |(length, word)| format!("{}{word}", seconds / length))
}

/// Time on a processor, to a tenth.
pub fn seconds(ms: u64) -> String {
    format!("{}.{}s", ms / 1000, ms % 1000 / 100)
}

pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = UNITS.iter().find(|(size, _)| count >= *size);
    unit.map_or(format!("{count}"), |(size, word)| {
        let tenths = count * 10 / size;
        if tenths < 100 {
            format!("{}.{}{word}", tenths / 10, tenths % 10)
        } else {
            format!("{}{word}", tenths / 10)
        }
    })
}

/// A point in time, as UTC: 2026-11-16T01:02:03Z.
pub fn when(unix_ms: u64) -> String {
    let time = Duration::from_millis(unix_ms).as_secs();
    let (days, rest) = (time / 86_400, time % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The same to the millisecond: 2026-11-16T01:02:03.456Z.
pub fn when_exactly(unix_us: u64) -> String {
    let ms = unix_us / 1000;
    let whole = when(ms);
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), ms % 1000)
}

/// The date of a day since 1970, counted in years that begin in March, so that
/// leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Columns as wide as their widest cell; the last one is cut to `width`.
pub fn table(rows: &[Vec<String>], width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| shown_width(cell)).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == columns {
                let used: usize = widths[..column].iter().map(|width| width + 2).sum();
                let room = width.map_or(usize::MAX, |width| width.saturating_sub(used).max(10));
                line.extend(cell.chars().take(room));
            } else {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', widths[column] - shown_width(cell) + 2));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Without what only sets a colour.
fn shown_width(cell: &str) -> usize {
    let mut inside = false;
    let visible = |letter: &char| match letter {
        '\x1b' => {
            inside = true;
            false
        }
        'm' if inside => {
            inside = false;
            false
        }
        _ => !inside,
    };
    cell.chars().filter(visible).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time() {
        assert_eq!(when(0), "1970-01-01T00:00:00Z");
        assert_eq!(when(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(when(1_794_790_765_448), "2026-11-16T00:59:25Z");
    }

    #[test]
    fn points_in_time_exactly() {
        assert_eq!(when_exactly(1_794_790_765_007_999), "2026-11-16T00:59:25.007Z");
    }

    #[test]
    fn sizes_and_ages() {
        assert_eq!([bytes(5), bytes(2048), bytes(150 << 20)], ["5", "2.0K", "150M"]);
        assert_eq!([age(5), age(59_999), age(3_600_000)], ["5ms", "59s", "1h"]);
    }
}
