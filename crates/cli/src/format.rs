//! Figures and tables, fit to be read.

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
    fn sizes_and_ages() {
        assert_eq!([bytes(5), bytes(2048), bytes(150 << 20)], ["5", "2.0K", "150M"]);
        assert_eq!([age(5), age(59_999), age(3_600_000)], ["5ms", "59s", "1h"]);
    }
}
