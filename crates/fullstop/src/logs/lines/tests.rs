use super::*;
use crate::blocking::wait;
use crate::logs::tests::Stage;

fn all(mut lines: Lines) -> Vec<LogLine> {
    std::iter::from_fn(|| wait(lines.next()).expect("read")).collect()
}

fn texts(lines: &[LogLine]) -> Vec<(String, bool)> {
    lines.iter().map(|line| (line.text().into_owned(), line.has_newline)).collect()
}

#[test]
fn each_line_comes_alone_and_without_its_newline() {
    let mut stage = Stage::new();
    stage.out.write(b"one\n\ntwo\n", 1_000_000);
    stage.err.write(b"three\nprompt> ", 2_000_000);
    let lines = all(stage.run.logs().lines());
    let wanted = [("one", true), ("", true), ("two", true), ("three", true), ("prompt> ", false)];
    assert_eq!(texts(&lines), wanted.map(|(text, ends)| (text.to_owned(), ends)));
    assert_eq!((lines[2].stream, lines[2].at), (Stream::Out, 1_000_000));
    assert_eq!((lines[3].stream, lines[3].at), (Stream::Err, 2_000_000));
}

#[test]
fn a_line_that_is_too_long_comes_in_pieces() {
    let mut stage = Stage::new();
    let long = [&vec![b'x'; 3 * LogLine::LONGEST + 5][..], b"\nnext\n"].concat();
    stage.out.write(&long, 1_000_000);
    let lines = all(stage.run.logs().lines());
    assert!(lines.iter().all(|line| line.bytes.len() <= LogLine::LONGEST));
    let ends: Vec<bool> = lines.iter().map(|line| line.has_newline).collect();
    assert_eq!(ends.iter().filter(|ends| **ends).count(), 2, "{ends:?}");
    let text: Vec<u8> = lines.iter().flat_map(|line| line.bytes.clone()).collect();
    assert_eq!(text.len(), long.len() - 2);
}

/// Also within an entry that has several lines.
#[test]
fn a_cursor_goes_on_behind_any_line() {
    let mut stage = Stage::new();
    stage.out.write(b"one\n\ntwo\n", 1_000_000);
    stage.err.write(b"three\nfour\n", 2_000_000);
    stage.out.write(b"five\nlast", 3_000_000);
    let whole = all(stage.run.logs().lines());
    for read in 0..=whole.len() {
        let mut lines = stage.run.logs().lines();
        let mut told = Vec::new();
        for _ in 0..read {
            told.push(wait(lines.next()).expect("read").expect("one more"));
        }
        told.extend(all(stage.run.logs().from(&lines.cursor()).lines()));
        assert_eq!(texts(&told), texts(&whole), "after {read}");
    }
}

#[test]
fn what_is_missing_is_told_in_its_place() {
    let mut stage = Stage::new();
    stage.write_more_than_fits();
    let lines = all(stage.run.logs().lines());
    let missing: Vec<_> = lines.iter().filter(|line| line.missing > 0).collect();
    assert_eq!((missing.len(), missing[0].bytes.len()), (1, 0), "{lines:?}");
    let kept: usize = lines
        .iter()
        .filter(|line| line.stream == Stream::Out)
        .map(|line| line.bytes.len() + usize::from(line.has_newline))
        .sum();
    assert_eq!(kept as u64 + missing[0].missing, 20 * 10);
}
