use super::lane::LONG;
use super::*;
use crate::blocking::wait;
use crate::error::Error;
use crate::runs::Runs;
use fullstop_core::id::Id;
use fullstop_store::{Log, RunDir};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

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

    /// Twenty lines of ten bytes on stdout, where there is room for eight, and one on stderr.
    pub fn write_more_than_fits(&mut self) {
        let dir = self.dir.as_ref().expect("live");
        let mut log = dir.log(Stream::Out, Some(80)).expect("a log");
        for line in 0..20 {
            log.write(format!("line {line:04}\n").as_bytes(), line * 1_000_000);
        }
        self.err.write(b"late\n", 30_000_000);
    }

    pub fn logs(&self) -> Logs {
        self.run.logs()
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
    std::iter::from_fn(|| wait(logs.next()).expect("read")).map(|said| told(&said)).collect()
}

#[test]
fn streams_come_in_order_of_time() {
    let mut stage = Stage::new();
    stage.out.write(b"one\n", 1_000_000);
    stage.err.write(b"two\n", 2_000_000);
    stage.out.write(b"three\nfour\n", 3_000_000);
    stage.err.write(b"five\n", 4_000_000);
    assert_eq!(all(stage.logs()), ["o:one\n", "e:two\n", "o:three\nfour\n", "e:five\n"]);
    let only = stage.logs().only(Stream::Err);
    assert_eq!(all(only), ["e:two\n", "e:five\n"]);
    let since = stage.logs().since(UNIX_EPOCH + Duration::from_secs(3));
    assert_eq!(all(since), ["o:three\nfour\n", "e:five\n"]);
    for (lines, wanted) in [
        (0, &[][..]),
        (1, &["e:five\n"]),
        (2, &["o:four\n", "e:five\n"]),
        (4, &["e:two\n", "o:three\nfour\n", "e:five\n"]),
        (9, &["o:one\n", "e:two\n", "o:three\nfour\n", "e:five\n"]),
    ] {
        assert_eq!(all(stage.logs().tail(lines)), wanted, "{lines}");
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
    assert_eq!(all(stage.logs().tail(1)), ["e:more"]);
    assert_eq!(all(stage.logs().tail(2)), ["o:prompt", "e:more"]);
}

#[test]
fn what_was_cut_is_told_in_its_place() {
    let mut stage = Stage::new();
    stage.write_more_than_fits();
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
            told.push(self::told(&wait(logs.next()).expect("read").expect("one more")));
        }
        let kept: LogCursor = logs.cursor().to_string().parse().expect("a cursor");
        told.extend(all(stage.logs().from(&kept)));
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
    let from = |cursor: &LogCursor| all(stage.logs().from(cursor));
    let mut late = stage.logs().since(UNIX_EPOCH + Duration::from_secs(8));
    wait(late.open()).expect("opened");
    assert_eq!(from(&late.cursor()), ["o:line 8\n", "o:line 9\n"]);
    let both = stage.logs().from(&late.cursor()).tail(9);
    assert_eq!(all(both), ["o:line 8\n", "o:line 9\n"], "the later of the two places");
    for text in ["", "x", "0tewhm6000001", "0tewhm6000001-0-0", "0tewhm6000001-0-0-0-0"] {
        assert!(text.parse::<LogCursor>().is_err(), "{text}");
    }
}

/// What is wanted cannot fail. What is wrong is told by whoever reads first, each time.
#[test]
fn what_is_wrong_is_told_by_the_first_read() {
    let stage = Stage::new();
    for stream in [Stream::Out, Stream::Tty] {
        let mut logs = stage.logs().only(stream);
        let read = [wait(logs.next()), wait(logs.next())];
        let is_right = read.iter().all(|read| match read {
            Ok(None) => stream == Stream::Out,
            Err(Error::NoLog { stream: Some(Stream::Tty), .. }) => stream == Stream::Tty,
            _ => false,
        });
        assert!(is_right, "{stream}: {read:?}");
    }
    let mut other = stage.logs().from(&LogCursor::new(Id::new(1, 1)));
    assert!(matches!(wait(other.next()), Err(Error::OtherLog { .. })));
    let runs = stage.run.runs();
    let silent = Id::new(1_800_000_000_000, 1 << 32);
    drop(runs.store().create(&silent).expect("a run"));
    for logs in [runs.run(silent.clone()).logs(), runs.run(silent).logs().only(Stream::Out)] {
        let read = wait({ logs }.next());
        assert!(matches!(read, Err(Error::NoLog { stream: None, .. })), "{read:?}");
    }
}

/// One who reads is told of the end for now, and may go on.
#[test]
fn behind_the_end_for_now_there_may_be_more() {
    let mut stage = Stage::new();
    stage.out.write(b"one\n", 1_000_000);
    let mut logs = stage.logs();
    for more in ["one", "two", "three"] {
        let entry = wait(logs.next()).expect("read").expect("more");
        assert_eq!(told(&entry), format!("o:{more}\n"));
        assert_eq!(wait(logs.next()).expect("read"), None);
        let next = if more == "one" { "two\n" } else { "three\n" };
        stage.out.write(next.as_bytes(), 2_000_000);
    }
}

/// A batch is one piece of work, however many lines are in it, and much is read in several.
#[test]
fn what_is_read_costs_one_piece_of_work_for_a_batch() {
    const LINES: usize = 20_000;
    let mut stage = Stage::new();
    let line = [&[b'x'; 99][..], b"\n"].concat();
    for at in 0..LINES {
        stage.out.write(&line, at as u64 * 1_000);
        stage.out.part();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (bytes, entries, waits) = runtime.expect("a runtime").block_on(async {
        let mut logs = stage.logs();
        let (mut bytes, mut entries, mut waits) = (0, 0, 0);
        loop {
            waits += usize::from(!logs.has_ready());
            let Some(LogEntry::Text { bytes: text, .. }) = logs.next().await.expect("read") else {
                return (bytes, entries, waits);
            };
            bytes += text.len();
            entries += 1;
        }
    });
    assert_eq!(bytes, LINES * line.len());
    assert!(entries > LINES / 10, "{entries} entries");
    assert!((2..=20).contains(&waits), "{waits} batches for two megabytes");
}

#[test]
fn a_stream_gives_every_entry_and_ends() {
    use futures_core::Stream as _;
    let mut stage = Stage::new();
    stage.out.write(b"one\n", 1_000_000);
    stage.err.write(b"two\n", 2_000_000);
    let mut stream = stage.logs().into_stream();
    let mut given = Vec::new();
    let read = wait(async {
        let next = |context: &mut std::task::Context<'_>| {
            std::pin::Pin::new(&mut stream).poll_next(context)
        };
        let mut next = next;
        while let Some(entry) = std::future::poll_fn(&mut next).await {
            given.push(told(&entry?));
        }
        Ok(())
    });
    read.expect("read");
    assert_eq!(given, ["o:one\n", "e:two\n"]);
}
