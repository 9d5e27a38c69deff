//! What the keeper hears: requests, signals, its guard.

use super::Keeper;
use crate::asker;
use crate::capture::{AttachRequest, Tty};
use crate::control::Order;
use crate::feed::{Feed, MOST_WAITING};
use crate::lifeline::{Received, ToKeeper};
use fullstop_core::machine::{Ask, Input};
use fullstop_core::signal::Signal;
use fullstop_core::words::Reason;
use fullstop_protocol::{
    Asker, LONGEST_BY, Refusal, RefusalCode, ReplyKind, Request, RequestKind, Text, Timestamp,
};
use std::os::unix::ffi::OsStrExt as _;

impl Keeper<'_> {
    /// Every request is answered before anything is done about it.
    pub(super) fn hear_orders(&mut self) {
        let orders = self.control.service();
        if !orders.iter().any(|order| self.control.is_adopter(order.from)) {
            self.forget_adopter_that_left();
        }
        self.answer(orders);
        // By these orders another client may have become the host, and may have left already. The
        // end of the line of the host before it means nothing any more.
        let host_left = self.control.host_has_left();
        self.forget_adopter_that_left();
        self.control.tidy();
        self.engine.act();
        // A host that has asked for the end may hang up and live on, which its pidfd tells.
        let lives_on = self.host_has_asked && !self.hosts.is_empty();
        if host_left && !self.outlives_host && !lives_on {
            self.engine.tell(Input::HostGone);
            self.hurry();
        }
        if host_left && let Some(tty) = self.tty() {
            tty.forget_owner();
        }
    }

    fn answer(&mut self, orders: Vec<Order>) {
        self.finish_adoptions(&orders);
        for mut order in orders {
            self.finish_adoption(&mut order);
            let Order { from, id, request, .. } = &order;
            let done = match request {
                Ok(request) => self.obey(&order, request),
                Err(refusal) => Err(refusal.clone()),
            };
            let is_accepted = done.is_ok();
            if let (Ok(RequestKind::AwaitRoom { bytes }), true) =
                (request.as_ref().map(|request| &request.kind), is_accepted)
            {
                self.control.await_room(*from, *id, *bytes);
                continue;
            }
            self.control.answer(*from, *id, done.unwrap_or_else(ReplyKind::Refused));
            match request.as_ref().map(|request| &request.kind) {
                Ok(&RequestKind::Attach { size, view, owner, sizes }) if is_accepted => {
                    self.attach(*from, AttachRequest { size, view, owner, sizes });
                }
                Ok(RequestKind::Subscribe) if is_accepted => self.subscribe(*from, *id),
                _ => {}
            }
        }
    }

    fn obey(&mut self, order: &Order, request: &Request) -> Result<ReplyKind, Refusal> {
        let own = self.assigned.launch.generation;
        if let Some(other) = request.generation.filter(|&generation| generation != own) {
            let message = format!("generation {other} is gone; this is generation {own}");
            return Err(Refusal::new(RefusalCode::Superseded, message));
        }
        if request.by.as_ref().is_some_and(|by| by.len() > LONGEST_BY) {
            let message = format!("\"by\" has at most {LONGEST_BY} bytes");
            return Err(Refusal::new(RefusalCode::InvalidRequest, message));
        }
        match &request.kind {
            RequestKind::Stop { reason, signal, within } => {
                let ordered = Ask::Order { reason: (*reason).into(), within: *within };
                let ask = signal.map_or(ordered, Ask::Signal);
                self.host_has_asked |= order.is_host;
                self.ask(Input::Ask(ask), || Some(asker_of(order, request)));
                // A signal begins a stop, and has no clock.
                if signal.is_some() && within.is_some() {
                    self.engine.hear(Input::Ask(ordered));
                }
                self.hurry();
            }
            RequestKind::Leave => {
                only_host(order, "let go of it")?;
                if !self.outlives_host {
                    let ask = Ask::Order { reason: Reason::Stopped, within: None };
                    self.host_has_asked = true;
                    self.ask(Input::Ask(ask), || Some(asker_of(order, request)));
                    self.hurry();
                }
            }
            RequestKind::Kill => {
                self.ask(Input::Kill, || Some(asker_of(order, request)));
                self.cut_drain();
            }
            RequestKind::Signal { signal } => self.forward(*signal),
            RequestKind::Input { text } => self.send(text)?,
            RequestKind::AwaitRoom { bytes } if *bytes > MOST_WAITING => {
                let message = format!("there is never room for more than {MOST_WAITING} bytes");
                return Err(Refusal::new(RefusalCode::InvalidRequest, message));
            }
            // It is answered by `tell_room`.
            RequestKind::AwaitRoom { .. } => drop(self.input()?),
            RequestKind::CloseStdin => self.input()?.close(),
            RequestKind::Resize { size } => {
                let size = *size;
                if !self.tty().ok_or_else(no_terminal)?.resize(size) {
                    let message = "its terminal stays as large as it was made";
                    return Err(Refusal::new(RefusalCode::InvalidRequest, message));
                }
            }
            RequestKind::Attach { .. } if order.is_host => {
                let message = "the line of the program that the run belongs to is no window";
                return Err(Refusal::new(RefusalCode::InvalidRequest, message));
            }
            RequestKind::Attach { .. } => {
                if !self.tty().ok_or_else(no_terminal)?.windows.has_room() {
                    let message = "it has too many windows already";
                    return Err(Refusal::new(RefusalCode::TooManyWindows, message));
                }
            }
            RequestKind::Stay => {
                only_host(order, "let it stay")?;
                self.outlives_host = true;
                self.hosts.clear();
            }
            RequestKind::Adopt { app, on_host_exit } => {
                self.adopt(order, app.as_deref(), *on_host_exit)?;
            }
            RequestKind::Census => return Ok(ReplyKind::Census(self.take_census())),
            RequestKind::Subscribe => {}
        }
        Ok(self.accepted())
    }

    pub(super) fn accepted(&mut self) -> ReplyKind {
        ReplyKind::Accepted {
            run: self.assigned.launch.id.clone(),
            generation: self.assigned.launch.generation,
            state: self.engine.notes.state(&self.engine.state),
            at: Timestamp::now(),
        }
    }

    /// Passes on what may be the beginning of the end, and remembers who asked for it if it is.
    fn ask(&mut self, input: Input, asker: impl FnOnce() -> Option<Asker>) {
        let before = self.engine.state.reason();
        self.engine.hear(input);
        if before.is_none() && self.engine.state.reason().is_some() {
            self.engine.notes.asked = asker();
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
    fn input(&mut self) -> Result<&mut Feed, Refusal> {
        match &mut self.engine.feed {
            None => {
                let message = "its stdin is not ours to write";
                Err(Refusal::new(RefusalCode::NoStdin, message).with_hint("--stdin pipe, or --pty"))
            }
            Some(feed) if feed.is_closed() => {
                Err(Refusal::new(RefusalCode::StdinClosed, "its stdin is closed"))
            }
            Some(feed) => Ok(feed),
        }
    }

    /// All of it or nothing: a command that does not read is not waited for.
    fn send(&mut self, text: &Text) -> Result<(), Refusal> {
        let bytes = text.0.as_bytes();
        let feed = self.input()?;
        if bytes.len() > feed.room() {
            let message = "the command does not read its input";
            return Err(Refusal::new(RefusalCode::InputFull, message));
        }
        feed.input(bytes);
        Ok(())
    }

    /// Answers the clients that wait for room, before each sleep.
    pub(super) fn tell_room(&mut self) {
        if !self.control.awaits_room() {
            return;
        }
        let room = self.input().map(|feed| feed.room());
        let accepted = self.accepted();
        self.control.tell_room(|bytes| match &room {
            Ok(room) if bytes > *room => None,
            Ok(_) => Some(accepted.clone()),
            Err(refusal) => Some(ReplyKind::Refused(refusal.clone())),
        });
    }

    fn attach(&mut self, from: usize, request: AttachRequest) {
        let handed = self.control.hand_over(from);
        if let (Some(handed), Some(tty)) = (handed, self.tty()) {
            tty.attach(handed, request);
            // What was typed may have come with the request.
            self.take_output();
        }
    }

    /// A keeper takes these as a request, not as an order to die.
    pub(super) fn hear_signals(&mut self) {
        while let Some(heard) = self.signals.next() {
            if heard.signal != Signal::CHLD {
                self.ask(Input::Ask(Ask::Plain), || asker::of_sender(heard));
                self.engine.act();
                self.hurry();
            }
        }
    }

    pub(super) fn hear_guard(&mut self) {
        while let Some(lifeline) = &self.lifeline {
            match lifeline.receive() {
                Received::Nothing => return,
                Received::Message(ToKeeper::Ask(ask, asker), _) => {
                    self.ask(Input::Ask(ask), || asker);
                    self.engine.act();
                    self.hurry();
                }
                Received::Message(ToKeeper::Forward(signal), _) => {
                    self.forward(signal);
                    self.engine.act();
                }
                Received::Message(ToKeeper::StoppedByHand, _) => self.pause.by_hand = true,
                Received::Closed => {
                    self.lifeline = None;
                    self.guard = None;
                    self.engine.tell(Input::HostGone);
                    self.hurry();
                }
            }
        }
    }
}

fn only_host(order: &Order, may: &str) -> Result<(), Refusal> {
    if order.is_host {
        return Ok(());
    }
    let message = format!("only the program that the run belongs to may {may}");
    Err(Refusal::new(RefusalCode::NotHost, message))
}

fn no_terminal() -> Refusal {
    let message = "it has no terminal of its own";
    Refusal::new(RefusalCode::NoTerminal, message).with_hint("fullstop run --pty")
}

fn asker_of(order: &Order, request: &Request) -> Asker {
    asker::of_client(order.peer, request.by.as_deref())
}
