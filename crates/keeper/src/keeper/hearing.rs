//! What the keeper hears: orders, signals, its guard.

use super::Keeper;
use crate::capture::{Tty, Wish};
use crate::control::Order;
use crate::feed::Feed;
use crate::lifeline::{Came, ToKeeper};
use fullstop_core::machine::{Ask, Input};
use fullstop_core::signal::Signal;
use fullstop_protocol::Text;
use fullstop_store::format::Phase;
use fullstop_store::{Reply, Request};
use std::os::unix::ffi::OsStrExt as _;

impl Keeper<'_> {
    /// Every order is answered before anything is done about it.
    pub(super) fn hear_orders(&mut self) {
        let (orders, host_left) = self.control.turn();
        for Order { from, request } in orders {
            let reply = match &request {
                Ok(request) => self.obey(request),
                Err(why) => Reply::Refused { why: why.clone() },
            };
            self.control.answer(from, &reply);
            if let (Ok(Request::Attach { size, view, owner, .. }), Reply::Accepted { .. }) =
                (request, &reply)
            {
                self.attach(from, Wish { size, view, owner });
            }
        }
        self.control.tidy();
        self.engine.act();
        if host_left && !self.outlives_host {
            self.engine.tell(Input::HostGone);
            self.hurry();
        }
        if host_left && let Some(tty) = self.tty() {
            tty.forget_owner();
        }
    }

    fn obey(&mut self, request: &Request) -> Reply {
        let own = self.assigned.launch.generation;
        if let Some(other) = request.generation().filter(|&generation| generation != own) {
            let why = format!("generation {other} is gone; this is generation {own}");
            return Reply::Refused { why };
        }
        let done = match request {
            Request::Stop { reason, signal, .. } => {
                let ask = signal.map_or(Ask::Order(*reason), Ask::Signal);
                self.engine.hear(Input::Ask(ask));
                self.hurry();
                Ok(())
            }
            Request::Kill { .. } => {
                self.engine.hear(Input::Kill);
                self.cut_drain();
                Ok(())
            }
            Request::Signal { signal, .. } => {
                self.forward(*signal);
                Ok(())
            }
            Request::Send { text, .. } => self.send(text),
            Request::CloseStdin { .. } => self.input().map(Feed::close),
            Request::Attach { .. } => match self.tty() {
                Some(tty) if tty.windows.has_room() => Ok(()),
                Some(_) => Err("it has too many windows already".to_owned()),
                None => Err("it has no terminal of its own (fullstop run --pty)".to_owned()),
            },
            Request::Stay { .. } => {
                self.outlives_host = true;
                self.hosts.clear();
                Ok(())
            }
        };
        match done {
            Ok(()) => self.accepted(),
            Err(why) => Reply::Refused { why },
        }
    }

    pub(super) fn accepted(&mut self) -> Reply {
        Reply::Accepted {
            id: self.assigned.launch.id.clone(),
            generation: self.assigned.launch.generation,
            phase: Phase::of(&self.engine.state),
        }
    }

    fn forward(&mut self, signal: Signal) {
        if self.engine.is_unborn() {
            self.early.push(signal);
        } else {
            self.engine.hear(Input::Forward(signal));
        }
    }

    fn tty(&mut self) -> Option<&mut Tty> {
        self.capture.as_mut().and_then(|capture| capture.tty.as_deref_mut())
    }

    /// The command's input, if it is ours to give.
    fn input(&mut self) -> Result<&mut Feed, String> {
        match &mut self.engine.feed {
            None => Err("its stdin is not ours to write (--stdin pipe, or --pty)".to_owned()),
            Some(feed) if feed.is_closed() => Err("its stdin is closed".to_owned()),
            Some(feed) => Ok(feed),
        }
    }

    /// All of it or nothing: a command that does not read is not waited for.
    fn send(&mut self, text: &Text) -> Result<(), String> {
        let bytes = text.0.as_bytes();
        let feed = self.input()?;
        if bytes.len() > feed.room() {
            return Err(fullstop_store::FULL.to_owned());
        }
        feed.input(bytes);
        Ok(())
    }

    fn attach(&mut self, from: usize, wish: Wish) {
        let handed = self.control.hand_over(from);
        if let (Some(handed), Some(tty)) = (handed, self.tty()) {
            tty.attach(handed, wish);
        }
    }

    /// A keeper takes these as a request, not as an order to die.
    pub(super) fn hear_signals(&mut self) {
        while let Some(heard) = self.signals.next() {
            if heard.signal != Signal::CHLD {
                self.engine.tell(Input::Ask(Ask::Plain));
                self.hurry();
            }
        }
    }

    pub(super) fn hear_guard(&mut self) {
        while let Some(lifeline) = &self.lifeline {
            match lifeline.receive() {
                Came::Nothing => return,
                Came::Message(ToKeeper::Ask(ask), _) => {
                    self.engine.tell(Input::Ask(ask));
                    self.hurry();
                }
                Came::Message(ToKeeper::Forward(signal), _) => {
                    self.forward(signal);
                    self.engine.act();
                }
                Came::Message(ToKeeper::StoppedByHand, _) => self.pause.by_hand = true,
                Came::Closed => {
                    self.lifeline = None;
                    self.guard = None;
                    self.engine.tell(Input::HostGone);
                    self.hurry();
                }
            }
        }
    }
}
