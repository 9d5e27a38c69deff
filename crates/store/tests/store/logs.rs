//! The logs of a run, on real disks.

use crate::kit::{Home, Over, begin, id};
use fullstop_core::words::Stream;
use fullstop_store::{Extent, LogReader, Piece, RunDir, Store, Took};
use proptest::prelude::*;
use std::io::Write as _;
use std::os::fd::AsFd as _;

#[test]
fn a_pipe_is_moved_into_the_log_to_its_end() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    assert_eq!(log.take(reader.as_fd(), 100, 1), Took::Nothing);
    writer.write_all(b"hello world").expect("written");
    assert_eq!(log.take(reader.as_fd(), 5, 2), Took::Bytes(5));
    assert_eq!(log.take(reader.as_fd(), 100, 3), Took::Bytes(6));
    drop(writer);
    assert_eq!(log.take(reader.as_fd(), 100, 4), Took::End);
    let text = std::fs::read(run.path().join("out.log")).expect("read");
    assert_eq!(text, b"hello world");
    let captured = log.captured();
    assert_eq!((captured.bytes, captured.cut, captured.failure), (11, 0, None));
}

/// All that a reader has to say now, pieces of one time joined.
fn all(reader: &mut LogReader) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    while let Some(piece) = reader.next().expect("read") {
        match (pieces.last_mut(), piece) {
            (Some(Piece::Bytes { at, bytes }), Piece::Bytes { at: then, bytes: more })
                if *at == then =>
            {
                bytes.extend(more);
            }
            (_, piece) => pieces.push(piece),
        }
    }
    pieces
}

pub fn reader(store: &Store, stream: Stream) -> LogReader {
    store.log(&id(1), stream).expect("looked").expect("a log")
}

/// What is left of the stream, and how much is missing in between.
pub fn text(reader: &mut LogReader) -> (Vec<u8>, Vec<u8>, u64) {
    let (mut head, mut tail, mut cut) = (Vec::new(), Vec::new(), 0);
    for piece in all(reader) {
        match piece {
            Piece::Cut { bytes } => cut += bytes,
            Piece::Bytes { bytes, .. } if cut == 0 => head.extend(bytes),
            Piece::Bytes { bytes, .. } => tail.extend(bytes),
        }
    }
    (head, tail, cut)
}

fn on_disk(run: &RunDir, stream: Stream) -> u64 {
    let entries = std::fs::read_dir(run.path()).expect("a directory").map(|entry| {
        let entry = entry.expect("an entry");
        (entry.file_name().to_string_lossy().into_owned(), entry.metadata().expect("stat").len())
    });
    entries.filter(|(name, _)| name.starts_with(&format!("{stream}.log"))).map(|(_, len)| len).sum()
}

/// Bytes that tell where they are from.
pub fn pattern(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(|at| u8::try_from(at * 31 / 7 % 251).unwrap()).collect()
}

fn streams() -> impl Strategy<Value = Stream> {
    prop::sample::select(vec![Stream::Out, Stream::Err, Stream::Tty])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// Whatever the chunks, the cap, and the number of those who wrote one after the other.
    #[test]
    fn what_is_written_is_read(
        chunks in prop::collection::vec((0usize..3000, any::<bool>(), 0u64..3000, 0u8..12), 0..40),
        stream in streams(),
        max in prop::option::of(100u64..20_000),
    ) {
        let home = Home::new();
        let run = begin(&home, &id(1), None);
        let mut log = run.log(stream, max).expect("a log");
        let (source, mut sink) = std::io::pipe().expect("a pipe");
        let (mut at, mut whole) = (1_000_000, Vec::new());
        let (mut follower, mut followed) = (reader(&home, stream), Vec::new());
        for (len, by_pipe, later, turn) in chunks {
            at += later;
            let bytes = pattern(whole.len() as u64, len);
            if by_pipe {
                sink.write_all(&bytes).expect("room");
                let mut left = len;
                while left > 0 {
                    match log.take(source.as_fd(), 1 << 20, at) {
                        Took::Bytes(count) => left -= count,
                        other => panic!("{other:?} with {left} left"),
                    }
                }
                prop_assert_eq!(log.take(source.as_fd(), 1 << 20, at), Took::Nothing);
            } else {
                log.write(&bytes, at);
            }
            whole.extend(bytes);
            prop_assert_eq!(log.offset(), whole.len() as u64);
            if let Some(max) = max {
                prop_assert!(on_disk(&run, stream) <= max);
            }
            match turn {
                // A guard goes on; the next generation does.
                0 => log.resume(),
                1 => log = run.log(stream, max).expect("the log again"),
                2 => followed.extend(all(&mut follower)),
                _ => {}
            }
        }
        let mut log = reader(&home, stream);
        let (head, tail, cut) = text(&mut log);
        let kept = (head.len() + tail.len()) as u64;
        prop_assert_eq!(kept + cut, whole.len() as u64);
        prop_assert_eq!(kept, on_disk(&run, stream));
        prop_assert!(whole.starts_with(&head) && whole.ends_with(&tail));
        prop_assert_eq!(log.extent().expect("asked"), Extent { kept, cut });
        prop_assert!(max.is_some() || cut == 0);
        if let Some(max) = max && cut > 0 {
            prop_assert_eq!(head.len() as u64, max / 2);
            prop_assert!(tail.len() as u64 + max / 8 * 2 >= max - max / 2 - max / 8);
        }
        // Whoever followed saw the same, and knows what it missed.
        followed.extend(all(&mut follower));
        let mut place = 0;
        for piece in followed {
            match piece {
                Piece::Cut { bytes } => place += usize::try_from(bytes).unwrap(),
                Piece::Bytes { bytes, at: then } => {
                    prop_assert!((1_000_000..=at).contains(&then));
                    prop_assert_eq!(&whole[place..place + bytes.len()], &bytes[..]);
                    place += bytes.len();
                }
            }
        }
        prop_assert_eq!(place, whole.len());
    }

    #[test]
    fn whatever_stands_in_an_index_no_byte_is_lost(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        has_header in any::<bool>(),
        small in any::<bool>(),
        since in any::<u64>(),
    ) {
        let home = Home::new();
        let run = begin(&home, &id(1), None);
        let mut log = run.log(Stream::Out, None).expect("a log");
        log.write(b"first\n", 5_000_000);
        log.write(b"second\n", 6_000_000);
        let path = run.path().join("out.idx");
        let mut index = std::fs::read(&path).expect("an index");
        index.truncate(if has_header { 16 } else { 0 });
        // Small numbers are offsets that could be.
        index.extend(noise.iter().map(|byte| if small { byte / 128 } else { *byte }));
        std::fs::write(&path, index).expect("written");
        prop_assert_eq!(text(&mut reader(&home, Stream::Out)).0, b"first\nsecond\n");
        reader(&home, Stream::Out).seek_time(since).expect("found");
        // Who goes on with it sets it right.
        let mut log = run.log(Stream::Out, None).expect("a log");
        log.write(b"third\n", 7_000_000);
        let pieces = all(&mut reader(&home, Stream::Out));
        let whole: Vec<u8> = pieces.iter().flat_map(|piece| match piece {
            Piece::Bytes { bytes, .. } => bytes.clone(),
            Piece::Cut { .. } => panic!("cut"),
        }).collect();
        prop_assert_eq!(whole, b"first\nsecond\nthird\n");
    }
}

fn piece(at: u64, text: &str) -> Piece {
    Piece::Bytes { at, bytes: text.as_bytes().to_vec() }
}

#[test]
fn every_chunk_has_its_time_and_near_ones_share_it() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    let mut follower = reader(&home, Stream::Out);
    log.write(b"a", 1_000_000);
    log.write(b"b", 1_000_999);
    assert_eq!(all(&mut follower), [piece(1_000_000, "ab")]);
    log.write(b"c", 1_001_000);
    // Clocks are set.
    log.write(b"d", 400_000);
    assert_eq!(all(&mut follower), [piece(1_001_000, "c"), piece(400_000, "d")]);
    let whole = [piece(1_000_000, "ab"), piece(1_001_000, "c"), piece(400_000, "d")];
    assert_eq!(all(&mut reader(&home, Stream::Out)), whole);
}

#[test]
fn a_look_that_finds_nothing_gives_no_time() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    let (source, mut sink) = std::io::pipe().expect("a pipe");
    assert_eq!(log.take(source.as_fd(), 100, 1_000_000), Took::Nothing);
    let mut follower = reader(&home, Stream::Out);
    assert_eq!(all(&mut follower), []);
    sink.write_all(b"late").expect("room");
    assert_eq!(log.take(source.as_fd(), 100, 9_000_000), Took::Bytes(4));
    assert_eq!(all(&mut follower), [piece(9_000_000, "late")]);
    // Nor to a follower who has read what stands before it.
    assert_eq!(log.take(source.as_fd(), 100, 10_000_000), Took::Nothing);
    let mut again = reader(&home, Stream::Out);
    assert_eq!(all(&mut again), [piece(9_000_000, "late")]);
    sink.write_all(b"later").expect("room");
    assert_eq!(log.take(source.as_fd(), 100, 20_000_000), Took::Bytes(5));
    assert_eq!(all(&mut again), [piece(20_000_000, "later")]);
}

#[test]
fn an_index_stays_small_beside_many_small_chunks() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    for at in 0..100_000 {
        log.write(b"x", at * 2_000);
    }
    let size = std::fs::metadata(run.path().join("out.idx")).expect("an index").len();
    assert!(size <= 70 * 1024, "{size}");
    assert_eq!(text(&mut reader(&home, Stream::Out)).0.len(), 100_000);
}

#[test]
fn a_log_of_before_there_was_an_index_is_read_and_continued() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    run.log_file(Stream::Out).expect("a log").write_all(b"old\n").expect("written");
    let pieces = all(&mut reader(&home, Stream::Out));
    let [Piece::Bytes { at, bytes }] = &pieces[..] else { panic!("{pieces:?}") };
    assert_eq!(bytes, b"old\n");
    assert!(*at > 1_700_000_000_000_000, "the time of the file: {at}");
    let mut log = run.log(Stream::Out, None).expect("a log");
    log.write(b"new\n", 2_000_000);
    assert_eq!(log.captured().bytes, 4, "of this generation");
    assert_eq!(text(&mut reader(&home, Stream::Out)).0, b"old\nnew\n");
}

#[test]
fn a_torn_record_costs_its_time_alone() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    log.write(b"one ", 1_000_000);
    log.write(b"two ", 2_000_000);
    let path = run.path().join("out.idx");
    let size = std::fs::metadata(&path).expect("an index").len();
    let index = std::fs::File::options().write(true).open(&path).expect("open");
    index.set_len(size - 3).expect("torn");
    assert_eq!(all(&mut reader(&home, Stream::Out)), [piece(1_000_000, "one two ")]);
    log.resume();
    log.write(b"three", 3_000_000);
    let whole = [piece(1_000_000, "one two "), piece(3_000_000, "three")];
    assert_eq!(all(&mut reader(&home, Stream::Out)), whole);
}

#[test]
fn captured_tells_of_this_generation_alone() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut first = run.log(Stream::Out, Some(800)).expect("a log");
    first.write(&pattern(0, 1000), 1);
    // The head of 400, then 1000 is in the sixth part of 100, and three older ones are left.
    assert_eq!((first.captured().bytes, first.captured().cut), (1000, 200));
    let mut second = run.log(Stream::Out, Some(800)).expect("a log");
    assert_eq!((second.captured().bytes, second.captured().cut), (0, 0));
    second.write(&pattern(1000, 50), 2);
    assert_eq!((second.captured().bytes, second.captured().cut), (50, 0));
    second.write(&pattern(1050, 550), 3);
    assert_eq!((second.captured().bytes, second.captured().cut), (600, 200));
    second.resume();
    assert_eq!((second.captured().bytes, second.captured().cut), (600, 200));
    assert_eq!(second.offset(), 1600);
}

#[test]
fn a_reader_follows_a_writer_that_rotates() {
    const WHOLE: u64 = 2_000_000;
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, Some(4000)).expect("a log");
    let mut follower = reader(&home, Stream::Out);
    let written = Over::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _end = written.at_end();
            let mut place = 0;
            while place < WHOLE {
                let len = 1 + place % 700;
                log.write(&pattern(place, usize::try_from(len).unwrap()), place);
                place += len;
            }
        });
        let (mut place, mut cuts) = (0, 0);
        loop {
            // Asked before, or the last piece would be missed.
            let is_last = written.is_said();
            while let Some(piece) = follower.next().expect("read") {
                match piece {
                    Piece::Cut { bytes } => (place, cuts) = (place + bytes, cuts + 1),
                    Piece::Bytes { bytes, .. } => {
                        assert_eq!(bytes, pattern(place, bytes.len()), "at {place}");
                        place += bytes.len() as u64;
                    }
                }
            }
            if is_last {
                break;
            }
        }
        assert!(place >= WHOLE, "{place}, {cuts} cuts");
    });
}

#[test]
fn the_last_lines() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    let last = |count| {
        let mut reader = reader(&home, Stream::Out);
        let lines = reader.seek_lines(count).expect("found");
        (lines, String::from_utf8(text(&mut reader).0).expect("text"))
    };
    assert_eq!(last(3), (0, String::new()));
    log.write(b"one\ntwo\nthree\n", 1);
    assert_eq!(last(0), (0, String::new()));
    assert_eq!(last(1), (1, "three\n".to_owned()));
    assert_eq!(last(2), (2, "two\nthree\n".to_owned()));
    assert_eq!(last(3), (3, "one\ntwo\nthree\n".to_owned()));
    assert_eq!(last(9), (3, "one\ntwo\nthree\n".to_owned()));
    log.write(b"no end", 2);
    assert_eq!(last(2), (2, "three\nno end".to_owned()));
    // Lines that are longer than what is read at once.
    log.write(&[&b"\n"[..], &vec![b'x'; 200_000], b"\n\n"].concat(), 3);
    assert_eq!(last(1), (1, "\n".to_owned()));
    assert_eq!(last(2).1.len(), 200_002);
    assert_eq!(last(3), (3, format!("no end\n{}\n\n", "x".repeat(200_000))));
}

#[test]
fn the_last_lines_reach_over_parts_and_over_what_was_cut() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, Some(800)).expect("a log");
    let line = |n: u64| format!("line {n:04}\n");
    let lines: String = (0..200).map(line).collect();
    log.write(lines.as_bytes(), 1);
    let mut near = reader(&home, Stream::Out);
    assert_eq!(near.seek_lines(20).expect("found"), 20);
    let wanted: String = (180..200).map(line).collect();
    assert_eq!(text(&mut near), (wanted.into_bytes(), Vec::new(), 0));
    let mut far = reader(&home, Stream::Out);
    let found = far.seek_lines(60).expect("found");
    let (head, tail, cut) = text(&mut far);
    assert_eq!(found, 60);
    assert!(cut > 0 && lines.contains(std::str::from_utf8(&head).expect("text")));
    assert!(lines.as_bytes().ends_with(&tail));
}

#[test]
fn since_a_time() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Out, Some(80)).expect("a log");
    for minute in 0..4 {
        log.write(format!("minute {minute}\n").as_bytes(), minute * 60_000_000);
    }
    let since = |at| {
        let mut reader = reader(&home, Stream::Out);
        reader.seek_time(at).expect("found");
        String::from_utf8(text(&mut reader).0).expect("text")
    };
    assert_eq!(since(0), "minute 0\nminute 1\nminute 2\nminute 3\n");
    assert_eq!(since(60_000_000), "minute 1\nminute 2\nminute 3\n");
    assert_eq!(since(60_000_001), "minute 2\nminute 3\n");
    assert_eq!(since(180_000_001), "");
    let mut both = reader(&home, Stream::Out);
    both.seek_time(60_000_000).expect("found");
    assert_eq!(both.seek_lines(9).expect("found"), 3);
    assert_eq!(text(&mut both).0, b"minute 1\nminute 2\nminute 3\n");
}

#[test]
fn what_is_no_pipe_is_copied() {
    use std::os::unix::net::UnixStream;
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut log = run.log(Stream::Tty, Some(8000)).expect("a log");
    let (source, mut sink) = UnixStream::pair().expect("a pair");
    assert_eq!(log.take(source.as_fd(), 100, 1), Took::Nothing);
    sink.write_all(&pattern(0, 5000)).expect("room");
    let mut taken = 0;
    while let Took::Bytes(count) = log.take(source.as_fd(), 1 << 20, 2) {
        taken += count;
    }
    assert_eq!(taken, 5000);
    drop(sink);
    assert_eq!(log.take(source.as_fd(), 100, 3), Took::End);
    assert_eq!(text(&mut reader(&home, Stream::Tty)).0, pattern(0, 5000));
}

#[test]
fn where_nothing_was_captured_there_is_no_log() {
    let home = Home::new();
    drop(begin(&home, &id(1), None));
    assert!(home.log(&id(1), Stream::Err).expect("looked").is_none());
    assert!(home.output(&id(1), Stream::Err).expect_err("nothing").is_missing());
}

#[test]
fn what_version_1_has_written_is_read_with_its_times() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    std::fs::write(run.path().join("out.log"), "one\ntwo\nthree\n").expect("written");
    let index = include_bytes!("../fixtures/v1/out.idx");
    std::fs::write(run.path().join("out.idx"), index).expect("written");
    let whole = [
        piece(1_790_000_000_000_000, "one\n"),
        piece(1_790_000_001_500_000, "two\n"),
        piece(1_790_000_002_000_001, "three\n"),
    ];
    assert_eq!(all(&mut reader(&home, Stream::Out)), whole);
}

#[test]
fn an_index_of_a_later_version_is_left_alone() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut later = include_bytes!("../fixtures/v1/out.idx").to_vec();
    later[8] = 2;
    std::fs::write(run.path().join("out.log"), "one\n").expect("written");
    std::fs::write(run.path().join("out.idx"), &later).expect("written");
    run.log(Stream::Out, None).expect("a log").write(b"two\n", 1);
    assert_eq!(text(&mut reader(&home, Stream::Out)).0, b"one\ntwo\n");
    assert_eq!(std::fs::read(run.path().join("out.idx")).expect("read"), later);
}
