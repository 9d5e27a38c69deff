//! Small tables for people: the first column to the left, numbers to the right.

use std::fmt::Write as _;

/// Which side the cells of a column stand on.
#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Right,
}

/// Rows as lines, indented, each column as wide as its widest cell.
pub fn aligned<R: AsRef<[S]>, S: AsRef<str>>(sides: &[Side], rows: &[R]) -> String {
    let cells = |row: &R| row.as_ref().iter().map(|cell| cell.as_ref().to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for ((cell, side), &width) in row.iter().zip(sides).zip(&widths) {
            let _ = match side {
                Side::Left => write!(line, "  {cell:<width$}"),
                Side::Right => write!(line, "  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [["crate", "code"], ["core", "1"], ["größer", "22"]];
        let text = aligned(&[Side::Left, Side::Right], &rows);
        assert_eq!(text, "  crate   code\n  core       1\n  größer    22\n");
    }

    #[test]
    fn nothing_trails() {
        let text = aligned(&[Side::Left, Side::Left], &[["a", ""], ["b", "c"]]);
        assert_eq!(text, "  a\n  b  c\n");
    }
}
