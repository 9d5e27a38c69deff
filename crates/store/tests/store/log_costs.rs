//! What it costs to write a log and to read it: calls and bytes, as the kernel counts them.

use crate::kit::{Home, begin, id};
use crate::logs::{reader, text};
use fullstop_core::words::Stream;
use fullstop_store::{LogReader, Piece, RunDir, Took};
use rustix::pipe::fcntl_setpipe_size;
use std::io::Write as _;
use std::os::fd::AsFd as _;

/// A line with its number; all are of one length.
const LINE: usize = 100;
/// A thousand lines a second.
const EVERY: u64 = 1_000;

fn line(number: u64) -> String {
    format!("{number:099}\n")
}

fn written(run: &RunDir, lines: u64) {
    let mut log = run.log(Stream::Out, None).expect("a log");
    for number in 0..lines {
        log.write(line(number).as_bytes(), number * EVERY);
    }
}

/// A time for each line, as indexes once had it.
fn dense(run: &RunDir, lines: u64) {
    let mut index = include_bytes!("../fixtures/v1/out.idx")[..16].to_vec();
    for number in 0..lines {
        index.extend((number * EVERY).to_le_bytes());
        index.extend((number * LINE as u64).to_le_bytes());
    }
    std::fs::write(run.path().join("out.idx"), index).expect("written");
}

/// What this thread has read until now: calls and bytes.
fn reads() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a count");
        line.trim().parse().expect("a number")
    };
    (number("syscr:"), number("rchar:"))
}

/// Whatever the length of the log: two blocks of data, one of times, and the steps of a
/// search among the times.
fn costs_a_tail(what: &str, seek: impl FnOnce(&mut LogReader), home: &Home, wanted: &[u8]) {
    let mut reader = reader(home, Stream::Out);
    let (calls, bytes) = reads();
    seek(&mut reader);
    let (head, _, cut) = text(&mut reader);
    let (calls, bytes) = {
        let after = reads();
        (after.0 - calls, after.1 - bytes)
    };
    assert_eq!((&head[..], cut), (wanted, 0), "{what}");
    assert!(bytes < 200 * 1024, "{what}: {bytes} bytes are read");
    assert!(calls < 60, "{what}: {calls} reads");
}

#[test]
fn a_tail_costs_its_tail() {
    const LINES: u64 = 200_000;
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    written(&run, LINES);
    let wanted: String = (LINES - 10..LINES).map(line).collect();
    for index in ["ours", "an old one"] {
        if index != "ours" {
            dense(&run, LINES);
        }
        let lines = |reader: &mut LogReader| assert_eq!(reader.seek_lines(10).expect("found"), 10);
        costs_a_tail(&format!("lines, {index}"), lines, &home, wanted.as_bytes());
    }
    let since = |reader: &mut LogReader| {
        reader.seek_time((LINES - 10) * EVERY).expect("found");
    };
    costs_a_tail("a time", since, &home, wanted.as_bytes());
}

#[test]
fn an_index_is_a_small_part_of_its_log_and_tells_times_to_a_tenth_of_a_second() {
    const LINES: u64 = 50_000;
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    written(&run, LINES);
    let size = |name| std::fs::metadata(run.path().join(name)).expect("a file").len();
    let (log, index) = (size("out.log"), size("out.idx"));
    assert!(index <= log / 60, "{index} bytes for {log}");
    let mut reader = reader(&home, Stream::Out);
    let mut offset = 0;
    while let Some(piece) = reader.next().expect("read") {
        let Piece::Bytes { at, bytes } = piece else { panic!("cut") };
        let came = |offset| (offset / LINE) as u64 * EVERY;
        let (first, last) = (came(offset), came(offset + bytes.len() - 1));
        assert!(at <= first && last - at < 100_000, "from {first} to {last}, told is {at}");
        offset += bytes.len();
    }
    assert_eq!(offset as u64, log);
}

/// What would be cut again at once is not written: a flood costs no more for a cap.
#[test]
fn a_flood_under_a_cap_is_passed_over() {
    const FLOOD: usize = 1 << 20;
    const CAP: u64 = 64 << 10;
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, Some(CAP)).expect("a log");
    let (source, mut sink) = std::io::pipe().expect("a pipe");
    assert!(fcntl_setpipe_size(&source, FLOOD).expect("a wide pipe") >= FLOOD);
    let (mut whole, mut number) = (Vec::new(), 0);
    for round in 0..4 {
        let mut flood = Vec::new();
        while flood.len() + LINE <= FLOOD {
            flood.extend(line(number).bytes());
            number += 1;
        }
        sink.write_all(&flood).expect("room");
        let (mut takes, mut taken) = (0, 0);
        while let Took::Bytes(count) = log.take(source.as_fd(), FLOOD, round * EVERY) {
            (takes, taken) = (takes + 1, taken + count);
        }
        assert_eq!(taken, flood.len());
        assert!(takes < 10, "{takes} steps for a flood");
        whole.extend(flood);
    }
    let captured = log.captured();
    assert_eq!(captured.bytes, whole.len() as u64);
    let (head, tail, cut) = text(&mut reader(&home, Stream::Out));
    let kept = (head.len() + tail.len()) as u64;
    assert_eq!((captured.cut, kept + cut), (cut, captured.bytes));
    assert!(kept <= CAP && kept > CAP * 3 / 4, "{kept} are kept");
    assert!(whole.starts_with(&head) && whole.ends_with(&tail));
}
