use super::lane::LONG;
use super::*;
use crate::runs::Runs;
use fullstop_core::id::Id;
use fullstop_store::{Log, RunDir};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A run that is live for as long as this is held, with its two logs.
pub struct Stage {
    pub run: Run,
    pub dir: Option<RunDir>,
    pub out: Log,
    pub err: Log,
}

impl Stage {
    pub fn new() -> Stage {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fullstop-logs-{}-{next}", std::process::id());
        let runs = Runs::at(&std::env::temp_dir().join(name)).expect("a store");
        let id = Id::new(1_800_000_000_000, next);
        let dir = runs.store().create(&id).expect("a run");
        let (out, err) = (dir.log(Stream::Out, None), dir.log(Stream::Err, None));
        let run = Run::new(runs, id, Some(1));
        Stage { run, dir: Some(dir), out: out.expect("a log"), err: err.expect("a log") }
    }

    pub fn end(&mut self) {
        self.dir.take().expect("live").finish().expect("finished");
    }

    pub fn logs(&self) -> Logs {
        self.run.logs().expect("logs")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.run.runs().path());
    }
}

/// What was said, with the first letter of who said it.
pub fn told(said: &LogEntry) -> String {
    match said {
        LogEntry::Text { stream, bytes, .. } => {
            format!("{}:{}", &stream.to_string()[..1], String::from_utf8_lossy(bytes))
        }
        LogEntry::Cut { stream, bytes, .. } => format!("{}-{bytes}", &stream.to_string()[..1]),
    }
}

fn all(mut logs: Logs) -> Vec<String> {
    std::iter::from_fn(|| logs.next().expect("read")).map(|said| told(&said)).collect()
}

#[test]
fn streams_come_in_order_of_time() {
    let mut stage = Stage::new();
    stage.out.write(b"one\n", 1_000_000);
    stage.err.write(b"two\n", 2_000_000);
    stage.out.write(b"three\nfour\n", 3_000_000);
    stage.err.write(b"five\n", 4_000_000);
    assert_eq!(all(stage.logs()), ["o:one\n", "e:two\n", "o:three\nfour\n", "e:five\n"]);
    let only = stage.logs().only(Stream::Err).expect("its log");
    assert_eq!(all(only), ["e:two\n", "e:five\n"]);
    assert!(stage.logs().only(Stream::Tty).is_err());
    let since = stage.logs().since(UNIX_EPOCH + Duration::from_secs(3)).expect("found");
    assert_eq!(all(since), ["o:three\nfour\n", "e:five\n"]);
    for (lines, wanted) in [
        (0, &[][..]),
        (1, &["e:five\n"]),
        (2, &["o:four\n", "e:five\n"]),
        (4, &["e:two\n", "o:three\nfour\n", "e:five\n"]),
        (9, &["o:one\n", "e:two\n", "o:three\nfour\n", "e:five\n"]),
    ] {
        assert_eq!(all(stage.logs().tail(lines).expect("found")), wanted, "{lines}");
    }
}

#[test]
fn a_line_is_not_torn_by_the_other_stream() {
    let mut stage = Stage::new();
    stage.out.write(b"half ", 1_000_000);
    stage.err.write(b"other\n", 2_000_000);
    stage.out.write(b"a line\nnext\n", 3_000_000);
    assert_eq!(all(stage.logs()), ["o:half a line\n", "e:other\n", "o:next\n"]);
}

#[test]
fn a_line_without_end_is_passed_on_in_pieces_and_not_torn() {
    let mut stage = Stage::new();
    let long = vec![b'x'; 5 * LONG];
    stage.out.write(&long, 1_000_000);
    stage.err.write(b"other\n", 2_000_000);
    stage.out.write(b" end\n", 3_000_000);
    let said = all(stage.logs());
    assert!(said.iter().all(|said| said.len() <= 2 * LONG + 2));
    assert_eq!(said.last().map(String::as_str), Some("e:other\n"));
    let out: String = said[..said.len() - 1].iter().map(|said| &said[2..]).collect();
    assert_eq!(out.len(), long.len() + 5);
}

#[test]
fn what_lacks_its_newline_comes_last_and_is_a_line() {
    let mut stage = Stage::new();
    stage.out.write(b"prompt", 1_000_000);
    stage.err.write(b"other\n", 2_000_000);
    stage.err.write(b"more", 3_000_000);
    assert_eq!(all(stage.logs()), ["e:other\n", "o:prompt", "e:more"]);
    assert_eq!(all(stage.logs().tail(1).expect("found")), ["e:more"]);
    assert_eq!(all(stage.logs().tail(2).expect("found")), ["o:prompt", "e:more"]);
}

#[test]
fn what_was_cut_is_told_in_its_place() {
    let mut stage = Stage::new();
    let dir = stage.dir.as_ref().expect("live");
    let mut log = dir.log(Stream::Out, Some(80)).expect("a log");
    for line in 0..20 {
        log.write(format!("line {line:04}\n").as_bytes(), line * 1_000_000);
    }
    stage.err.write(b"late\n", 30_000_000);
    let said = all(stage.logs());
    let cut = said.iter().position(|said| said.starts_with("o-")).expect("a cut");
    assert_eq!(said[..cut], ["o:line 0000\n", "o:line 0001\n", "o:line 0002\n", "o:line 0003\n"]);
    assert_eq!(said.last().map(String::as_str), Some("e:late\n"));
}

/// How many reads the kernel has counted for this thread.
pub fn reads() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let count = text.lines().find_map(|line| line.strip_prefix("syscr: ")).expect("a count");
    count.parse().expect("a number")
}

#[test]
fn what_is_read_costs_blocks_and_not_lines() {
    const LINES: u64 = 10_000;
    let mut stage = Stage::new();
    for at in 0..LINES {
        stage.out.write(&[&[b'x'; 99][..], b"\n"].concat(), at * 1_000);
        // Order is kept between streams, so that both have many times. Later one is silent.
        if at % 10 == 0 {
            stage.out.part();
            stage.err.part();
        }
        if at % 10 == 0 && at < LINES / 2 {
            stage.err.write(b"and here\n", at * 1_000);
        }
    }
    let before = reads();
    let said = all(stage.logs());
    let reads = reads() - before;
    assert!(said.len() > 1_000, "{} times", said.len());
    assert!(said.windows(2).any(|two| two[0].starts_with('o') && two[1].starts_with('e')));
    // Sixteen blocks of a megabyte, and for each one a look at the other stream.
    assert!(reads < 100, "{reads} reads for a megabyte");
}

/// Another reader goes on behind what was returned, wherever that was, and tells no line twice.
#[test]
fn a_cursor_goes_on_behind_any_entry() {
    let mut stage = Stage::new();
    stage.out.write(b"one\n", 1_000_000);
    stage.err.write(b"two\nthree\n", 2_000_000);
    stage.out.write(b"half ", 3_000_000);
    stage.err.write(b"four\n", 4_000_000);
    stage.out.write(b"a line\nlast", 5_000_000);
    let whole = all(stage.logs());
    for read in 0..=whole.len() {
        let mut logs = stage.logs();
        let mut told: Vec<String> = Vec::new();
        for _ in 0..read {
            told.push(self::told(&logs.next().expect("read").expect("one more")));
        }
        let kept: LogCursor = logs.cursor().to_string().parse().expect("a cursor");
        told.extend(all(stage.logs().from(&kept).expect("the same run")));
        assert_eq!(told, whole, "after {read}");
    }
}

/// Where reading begins late, the cursor is there from the first.
#[test]
fn a_cursor_stands_where_reading_begins() {
    let mut stage = Stage::new();
    for at in 1..=9 {
        stage.out.write(format!("line {at}\n").as_bytes(), at * 1_000_000);
    }
    let from = |cursor: &LogCursor| all(stage.logs().from(cursor).expect("the same run"));
    let late = stage.logs().since(UNIX_EPOCH + Duration::from_secs(8)).expect("found");
    assert_eq!(from(&late.cursor()), ["o:line 8\n", "o:line 9\n"]);
    assert!(stage.logs().from(&LogCursor::new(Id::new(1, 1))).is_err(), "of another run");
    for text in ["", "x", "0tewhm6000001", "0tewhm6000001-0-0", "0tewhm6000001-0-0-0-0"] {
        assert!(text.parse::<LogCursor>().is_err(), "{text}");
    }
}
