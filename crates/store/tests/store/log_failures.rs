//! Logs that cannot be written to their end.

use crate::kit::{begin, id};
use crate::logs::{pattern, reader, text};
use crate::stage;
use fullstop_core::words::Stream;
use fullstop_store::{Log, Store, Took};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The log ends, the pipe is read on, and both are told.
fn ends_at(log: &mut Log, (source, mut sink): (impl AsFd, impl Write), room: u64, why: &str) {
    let mut written = 0;
    let chunk = pattern(0, 4096);
    while log.captured().failure.is_none() {
        assert!(written <= room, "it should have failed");
        sink.write_all(&chunk).expect("room");
        written += chunk.len() as u64;
        while let Took::Bytes(_) = log.take(source.as_fd(), 1 << 20, written) {}
    }
    let said = log.failed_now().expect("said");
    assert!(said.to_lowercase().contains(why) && said.contains(".log"), "{said}");
    assert_eq!(log.failed_now(), None, "once");
    for _ in 0..100 {
        sink.write_all(&chunk).expect("nobody waits");
        written += chunk.len() as u64;
        while let Took::Bytes(_) = log.take(source.as_fd(), 1 << 20, written) {}
    }
    log.write(b"more", written);
    drop(sink);
    assert_eq!(log.take(source.as_fd(), 1 << 20, written), Took::End);
    let captured = log.captured();
    assert_eq!(captured.bytes, written + 4);
    assert_eq!(captured.bytes - captured.cut, log.offset());
    assert_eq!(captured.failure, Some(said));
}

#[test]
fn a_full_disk_ends_the_log_and_nothing_else() {
    let test = "log_failures::a_full_disk_ends_the_log_and_nothing_else";
    let mount = "mount -t tmpfs -o size=256k,mode=700 none \"$DIR\"";
    let Some(dir) = crate::disk::on_disk(test, mount) else { return };
    let store = Store::at(&dir).expect("a store");
    let run = begin(&store, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    ends_at(&mut log, std::io::pipe().expect("a pipe"), 300 * 1024, "no space left");
    let (head, _, _) = text(&mut reader(&store, Stream::Out));
    assert_eq!(head.len() as u64, log.offset());
    assert!(head.chunks(4096).all(|chunk| pattern(0, 4096).starts_with(chunk)));
}

#[test]
fn a_limit_on_files_ends_the_log_and_nothing_else() {
    let test = "log_failures::a_limit_on_files_ends_the_log_and_nothing_else";
    if !stage::is_on(test) {
        let scratch = crate::kit::Scratch::new();
        // As in the keeper, where SIGXFSZ is ignored; 512 blocks of 512 bytes.
        return stage::play(test, &[], "trap '' XFSZ; ulimit -f 512", scratch.path());
    }
    let store = Store::at(&stage::dir().expect("the stage").join("state")).expect("a store");
    let run = begin(&store, &id(1), None);
    let mut log = run.log(Stream::Out, None).expect("a log");
    ends_at(&mut log, std::io::pipe().expect("a pipe"), 600 * 1024, "file too large");
}

#[test]
fn what_was_read_and_cannot_be_written_is_counted() {
    let test = "log_failures::what_was_read_and_cannot_be_written_is_counted";
    let mount = "mount -t tmpfs -o size=256k,mode=700 none \"$DIR\"";
    let Some(dir) = crate::disk::on_disk(test, mount) else { return };
    let store = Store::at(&dir).expect("a store");
    let run = begin(&store, &id(1), None);
    let mut log = run.log(Stream::Tty, None).expect("a log");
    // No pipe, so nothing can be moved.
    let pair = UnixStream::pair().expect("a pair");
    ends_at(&mut log, pair, 300 * 1024, "no space left");
}
