//! The output a keeper stands between: two pipes, or one terminal.
//!
//! It is made before the keeper is forked, so that the guard holds the same pipes,
//! logs and master, and can go on where a killed keeper was cut short.

mod channel;
mod drain;
mod owner;
mod shown;
mod tty;
mod windows;

pub use drain::Draining;
pub use tty::Tty;
pub use windows::AttachRequest;

use crate::assignment::Assignment;
use crate::ledger::Ledger;
use channel::Channel;
use fullstop_cage::linux::holders;
use fullstop_cage::plain;
use fullstop_core::cage::OutputHolder;
use fullstop_core::words::{OnExit, Stream};
use fullstop_protocol::CapturedStream;
use fullstop_protocol::Output;
use fullstop_store::Log;
use owner::Owner;
use rustix::event::PollFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Capture {
    pipes: Vec<Channel>,
    /// Boxed: it is large, few runs have one, and every start moves it around.
    pub tty: Option<Box<Tty>>,
}

/// The command's ends.
#[derive(Debug, Default)]
pub struct Ends {
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    pub terminal: Option<OwnedFd>,
}

/// What a turn brought.
#[derive(Debug, Default)]
pub struct Progress {
    pub bytes: u64,
    /// Streams that have come to their end.
    pub over: Vec<Stream>,
    pub failed: Vec<(Stream, String)>,
    /// An owner was found that cannot be written.
    pub refused: bool,
}

impl Capture {
    /// Nothing, if the command keeps the output it was given.
    pub fn new(
        assigned: &Assignment,
        ledger: Option<&Ledger>,
    ) -> Result<(Option<Capture>, Ends), String> {
        let mut capture = Capture::default();
        let mut ends = Ends::default();
        let log = |stream| -> Result<Log, String> {
            let ledger = ledger.ok_or("there is no record, and so no place for a log")?;
            ledger.log(stream, assigned.spec.log_max).map_err(|error| error.to_string())
        };
        let shows = match assigned.spec.output {
            Output::Terminal { size, fit } => {
                let why = |error| format!("cannot make a terminal: {}", plain(&error));
                let tty = Tty::new(log(Stream::Tty)?, size.clamped(), fit).map_err(why)?;
                ends.terminal = Some(tty.side().map_err(why)?);
                capture.tty = Some(Box::new(tty));
                return Ok((Some(capture), ends));
            }
            // Whoever is let go must not lose its reader.
            Output::Log if assigned.spec.on_exit == OnExit::Release => {
                let ledger = ledger.ok_or("there is no record, and so no place for a log")?;
                let file =
                    |stream| ledger.log_file(stream).map(Some).map_err(|error| error.to_string());
                ends.stdout = file(Stream::Out)?;
                ends.stderr = file(Stream::Err)?;
                return Ok((None, ends));
            }
            Output::Inherit => return Ok((None, ends)),
            Output::Log => false,
            Output::Show => true,
        };
        let mut open = |stream, standard: BorrowedFd<'_>| -> Result<Option<OwnedFd>, String> {
            let why = |error: io::Error| format!("cannot capture output: {}", plain(&error));
            let owner = if shows { Some(Owner::of(standard).map_err(why)?) } else { None };
            let (channel, end) = Channel::new(stream, log(stream)?, owner).map_err(why)?;
            capture.pipes.push(channel);
            Ok(Some(end))
        };
        ends.stdout = open(Stream::Out, io::stdout().as_fd())?;
        ends.stderr = open(Stream::Err, io::stderr().as_fd())?;
        Ok((Some(capture), ends))
    }

    /// The guard begins where the keeper was cut short.
    pub fn resume(&mut self) {
        self.pipes.iter_mut().for_each(Channel::resume);
        if let Some(tty) = &mut self.tty {
            tty.log.resume();
        }
    }

    /// The logs that are written, each with its stream.
    pub fn logs(&mut self) -> impl Iterator<Item = (Stream, &mut Log)> {
        let pipes = self.pipes.iter_mut().map(|pipe| (pipe.stream, pipe.log()));
        pipes.chain(self.tty.iter_mut().map(|tty| (Stream::Tty, &mut tty.log)))
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        let pipes = self.pipes.iter().flat_map(Channel::descriptors);
        pipes.chain(self.tty.iter().flat_map(|tty| tty.descriptors())).collect()
    }

    /// `hears`: there is room for what is typed into windows.
    pub fn interest(&self, hears: bool) -> impl Iterator<Item = PollFd<'_>> {
        let tty = self.tty.iter().flat_map(move |tty| tty.interest(hears));
        self.pipes.iter().filter_map(Channel::interest).chain(tty)
    }

    pub fn patience(&self) -> Option<Duration> {
        let pipes = self.pipes.iter().filter_map(Channel::patience);
        pipes.chain(self.tty.as_deref().and_then(Tty::patience)).min()
    }

    pub fn service(&mut self) -> Progress {
        let mut came = Progress::default();
        for at in 0..self.pipes.len() {
            let turn = self.pipes[at].service();
            if turn.bytes > 0 {
                let others = self.pipes.iter_mut().enumerate().filter(|(other, _)| *other != at);
                others.for_each(|(_, other)| other.part());
            }
            let channel = &mut self.pipes[at];
            came.bytes += turn.bytes as u64;
            came.over.extend(turn.over.then_some(channel.stream));
            came.failed.extend(channel.failed_now().map(|why| (channel.stream, why)));
            came.refused |= channel.refused_now();
        }
        if let Some(tty) = &mut self.tty {
            let turn = tty.service();
            came.bytes += turn.bytes as u64;
            came.over.extend(turn.over.then_some(Stream::Tty));
            came.failed.extend(tty.log.failed_now().map(|why| (Stream::Tty, why)));
        }
        came
    }

    pub fn is_over(&self) -> bool {
        self.pipes.iter().all(Channel::is_over) && self.tty.as_deref().is_none_or(Tty::is_over)
    }

    /// Somebody who must miss nothing has no room.
    pub fn owner_is_behind(&self) -> bool {
        self.pipes.iter().any(Channel::owner_is_behind)
            || self.tty.as_ref().is_some_and(|tty| tty.windows.owner_is_owed())
    }

    /// Somebody who must miss nothing has not said that all is shown.
    pub fn owner_is_asked(&self) -> bool {
        self.tty.as_deref().is_some_and(Tty::owner_is_asked)
    }

    /// How much waits to be read.
    fn waiting(&self) -> u64 {
        let pipes: u64 = self.pipes.iter().map(Channel::waiting).sum();
        pipes + self.tty.as_deref().map_or(0, Tty::waiting)
    }

    pub fn captured(&self) -> Vec<CapturedStream> {
        let pipes = self.pipes.iter().map(Channel::captured);
        pipes.chain(self.tty.iter().map(|tty| tty.captured())).collect()
    }

    /// Who else holds what has not come to its end.
    pub fn holders(&self, but: &[i32]) -> Vec<OutputHolder> {
        let pipes = self.pipes.iter().filter_map(Channel::pipe);
        let open = pipes.chain(self.tty.as_deref().and_then(Tty::master));
        let mut all: Vec<OutputHolder> = open.flat_map(|fd| holders(fd.as_fd(), but)).collect();
        all.sort_unstable_by_key(|holder| holder.pid);
        all.dedup();
        all
    }

    /// For the guard, which only holds what the keeper reads; and for the keeper, once
    /// nobody is left who could open the terminal again.
    pub fn let_go_of_side(&mut self) {
        if let Some(tty) = &mut self.tty {
            tty.let_go_of_side();
        }
    }

    /// Whoever started the run waits no longer; what is still written is logged.
    pub fn forget_owner(&mut self) {
        self.pipes.iter_mut().for_each(Channel::forget_owner);
    }

    /// Whoever held it before has found owners that cannot be written.
    pub fn know_refused(&mut self, output: &[CapturedStream]) {
        for captured in output.iter().filter(|captured| captured.refusal.is_some()) {
            let pipes = self.pipes.iter_mut().filter(|pipe| pipe.stream == captured.stream);
            pipes.for_each(|pipe| pipe.is_refused(captured));
            let tty = self.tty.as_mut().filter(|_| captured.stream == Stream::Tty);
            let _ = tty.map(|tty| tty.is_refused(captured));
        }
    }

    /// That stream is over, or not wanted.
    pub fn drop_stream(&mut self, stream: Stream) {
        self.pipes.iter_mut().filter(|pipe| pipe.stream == stream).for_each(Channel::close);
    }

    /// Nobody is waited for any more. What an owner has had no room for is in the log
    /// at least.
    pub fn close(&mut self) {
        for pipe in &mut self.pipes {
            pipe.forget_owner();
            pipe.service();
            pipe.close();
        }
        if let Some(tty) = &mut self.tty {
            tty.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstop_core::id::Id;
    use fullstop_store::Store;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::path::PathBuf;

    /// A pipe with this owner, its end, and where its log is.
    fn captured_for(name: &str, owner: BorrowedFd<'_>) -> (Capture, OwnedFd, PathBuf) {
        let name = format!("fullstop-keeper-capture-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let store = Store::at(&path).expect("a store");
        let run = store.create(&Id::new(1_800_000_000_000, 7)).expect("a run");
        let log = run.log(Stream::Out, None).expect("a log");
        let owner = Owner::of(owner).expect("an owner");
        let (channel, end) = Channel::new(Stream::Out, log, Some(owner)).expect("a channel");
        (Capture { pipes: vec![channel], tty: None }, end, path)
    }

    #[test]
    fn an_owner_that_never_reads_costs_the_log_nothing() {
        let (_unread, full) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        while rustix::io::write(&full, &[0; 4096]).is_ok() {}
        let (mut capture, end, path) = captured_for("unread", full.as_fd());
        rustix::io::write(&end, b"last words").expect("room in its own pipe");
        assert_eq!(capture.service().bytes, 0, "the owner has no room");
        assert!(capture.owner_is_behind() && !capture.is_over());
        capture.close();
        let out = &capture.captured()[0];
        assert_eq!((out.bytes, out.unshown, &out.refusal), (10, 10, &None));
        assert!(capture.is_over());
        let _ = std::fs::remove_dir_all(path);
    }

    #[test]
    fn an_owner_that_cannot_be_written_ends_nothing() {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let (mut capture, end, path) = captured_for("full", full.as_fd());
        rustix::io::write(&end, b"one").expect("room");
        assert!(capture.service().refused);
        assert!(!capture.is_over() && !capture.owner_is_behind());
        rustix::io::write(&end, b" and more").expect("it is still read");
        assert!(!capture.service().refused, "it is told once");
        drop(end);
        assert_eq!(capture.service().over, [Stream::Out]);
        let out = capture.captured().remove(0);
        assert_eq!((out.bytes, out.cut, out.unshown), (12, 0, 12));
        assert_eq!(out.refusal.as_deref(), Some("no space left on device"));
        let _ = std::fs::remove_dir_all(path);
    }

    #[test]
    fn whoever_takes_over_knows_what_was_refused() {
        let null = std::fs::File::options().write(true).open("/dev/null").expect("/dev/null");
        let (mut capture, end, path) = captured_for("taken-over", null.as_fd());
        let told = r#"[{"stream": "out", "bytes": 7, "unshown": 7, "refusal": "no space left"}]"#;
        capture.know_refused(&serde_json::from_str::<Vec<CapturedStream>>(told).expect("streams"));
        rustix::io::write(&end, b"the end").expect("room");
        assert!(!capture.service().refused, "it was told before");
        let out = &capture.captured()[0];
        assert_eq!((out.unshown, out.refusal.as_deref()), (7, Some("no space left")));
        let _ = std::fs::remove_dir_all(path);
    }

    #[test]
    fn an_owner_that_left_is_told_to_the_writer_and_the_log_has_the_rest() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let (mut capture, end, path) = captured_for("left", writer.as_fd());
        rustix::io::write(&end, b"shown").expect("room");
        assert_eq!(capture.service().bytes, 5);
        drop(reader);
        rustix::io::write(&end, b" and not").expect("room");
        assert_eq!(capture.service().over, [Stream::Out]);
        assert_eq!(rustix::io::write(&end, b"x"), Err(rustix::io::Errno::PIPE));
        let out = capture.captured().remove(0);
        assert_eq!((out.bytes, out.cut, out.unshown, out.refusal), (13, 0, 8, None));
        let _ = std::fs::remove_dir_all(path);
    }
}
