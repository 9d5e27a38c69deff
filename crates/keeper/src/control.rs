//! Orders from others: a socket in the run's directory, and the host's own line.
//!
//! Nothing here blocks. Whoever does not read what it is told is dropped; an order
//! that came in whole is obeyed even if its sender is gone.

use crate::backlog::{Backlog, Gone};
use crate::engine::timespec;
use fullstop_cage::linux::{now, peer};
use fullstop_core::words::Moment;
use fullstop_store::{Reply, Request};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Enough for every window and script of one person.
const MOST_CLIENTS: usize = 256;
/// A client this far behind does not read.
const MOST_UNSENT: usize = 1 << 20;
/// No order is this long.
const LONGEST_LINE: usize = 1 << 16;
/// Whoever connects asks at once; one who has not asked by then may be sent away.
const TIME_TO_ASK: Duration = Duration::from_secs(1);
/// When nobody can be let in (no descriptor left), there is no use in asking at once.
const DEAF_FOR: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct Control {
    listener: Option<OwnedFd>,
    clients: Vec<Client>,
    deaf_until: Option<Moment>,
}

#[derive(Debug)]
struct Client {
    stream: OwnedFd,
    unread: Vec<u8>,
    unsent: Backlog,
    since: Moment,
    /// It was answered.
    told: bool,
    /// Whoever asked for the run; it is first told when that is born.
    host: bool,
    gone: bool,
}

/// A connection that becomes something else.
#[derive(Debug)]
pub struct Handed {
    pub stream: OwnedFd,
    /// What its other side has said already, and has not been told yet.
    pub unread: Vec<u8>,
    pub unsent: Backlog,
}

/// An order, and where to answer it.
pub struct Order {
    pub from: usize,
    pub request: Result<Request, String>,
}

impl Control {
    pub fn listen(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    pub fn host(&mut self, stream: OwnedFd) {
        let _ = rustix::io::ioctl_fionbio(&stream, true);
        self.clients.push(Client::new(stream, true));
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        let listener = self.listener.iter().map(AsRawFd::as_raw_fd);
        listener.chain(self.clients.iter().map(|client| client.stream.as_raw_fd())).collect()
    }

    pub fn is_open(&self) -> bool {
        self.listener.is_some()
    }

    pub fn has_host(&self) -> bool {
        self.clients.iter().any(|client| client.host)
    }

    pub fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let deaf = self.deaf_until.is_some_and(|until| now() < until);
        let listener = self.listener.iter().filter(move |_| !deaf);
        let clients = self.clients.iter().map(|client| {
            let out = if client.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&client.stream, PollFlags::IN | out)
        });
        listener.map(|fd| PollFd::new(fd, PollFlags::IN)).chain(clients)
    }

    /// When to look again though nothing happens.
    pub fn patience(&self) -> Option<Duration> {
        self.deaf_until.map(|until| until.since(now())).filter(|wait| !wait.is_zero())
    }

    /// Lets newcomers in and reads what was said. Returns the orders, and whether
    /// the host has left.
    pub fn turn(&mut self) -> (Vec<Order>, bool) {
        self.accept();
        let mut orders = Vec::new();
        for (from, client) in self.clients.iter_mut().enumerate() {
            client.flush();
            client.read();
            while let Some(line) = client.line() {
                let request = serde_json::from_slice(&line).map_err(|error| error.to_string());
                let attaches = matches!(request, Ok(Request::Attach { .. }));
                orders.push(Order { from, request });
                // What follows is not said in lines any more.
                if attaches {
                    break;
                }
            }
        }
        let host_left = self.clients.iter().any(|client| client.host && client.gone);
        (orders, host_left)
    }

    /// Forgets who has left; the orders of this turn must have been answered.
    pub fn tidy(&mut self) {
        self.clients.retain(|client| !client.gone);
    }

    fn accept(&mut self) {
        loop {
            // Whoever is not let in waits at the door.
            if self.clients.len() >= MOST_CLIENTS && !self.make_room() {
                return self.deaf_until = Some(now() + DEAF_FOR);
            }
            let Some(listener) = &self.listener else { return };
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(stream) if is_ours(&stream) => {
                    self.clients.push(Client::new(stream, false));
                }
                Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return self.deaf_until = None,
                // Where there is no descriptor left, one who is done makes room.
                Err(Errno::MFILE) if self.make_room() => {}
                Err(_) => return self.deaf_until = Some(now() + DEAF_FOR),
            }
        }
    }

    /// Who is idle has to go; never one whose order is still to be read or answered.
    fn make_room(&mut self) -> bool {
        let now = now();
        let idle = self.clients.iter_mut().position(|client| client.is_idle(now));
        idle.map(|at| self.clients.remove(at)).is_some()
    }

    pub fn answer(&mut self, to: usize, reply: &Reply) {
        if let Some(client) = self.clients.get_mut(to) {
            client.told = true;
            client.say(reply);
        }
    }

    /// Gives a connection away, once its order was answered.
    pub fn hand_over(&mut self, from: usize) -> Option<Handed> {
        let client = self.clients.get_mut(from).filter(|client| !client.host && !client.gone)?;
        let stream = client.stream.try_clone().ok()?;
        client.gone = true;
        Some(Handed {
            stream,
            unread: std::mem::take(&mut client.unread),
            unsent: std::mem::take(&mut client.unsent),
        })
    }

    /// Tells the host that the run is born, or is not to be.
    pub fn tell_host(&mut self, reply: &Reply) {
        for client in self.clients.iter_mut().filter(|client| client.host && !client.told) {
            client.told = true;
            client.say(reply);
        }
    }

    /// Waits a little for those who read: what was said last matters most.
    pub fn drain(&mut self) {
        const PATIENCE: Duration = Duration::from_millis(200);
        let until = now() + PATIENCE;
        loop {
            let waiting = |client: &&Client| !client.gone && !client.unsent.is_empty();
            let mut fds: Vec<_> = (self.clients.iter().filter(waiting))
                .map(|client| PollFd::new(&client.stream, PollFlags::OUT))
                .collect();
            if fds.is_empty() || now() >= until {
                return;
            }
            let _ = poll(&mut fds, Some(&timespec(until.since(now()))));
            self.clients.iter_mut().for_each(Client::flush);
        }
    }
}

/// Only the owner's uid may steer a run, and root, who could anyway.
fn is_ours(stream: &OwnedFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    peer(stream).is_some_and(|peer| peer.uid == own || peer.uid == 0)
}

impl Client {
    fn new(stream: OwnedFd, host: bool) -> Client {
        let unsent = Backlog::default();
        Client { stream, unread: Vec::new(), unsent, since: now(), told: false, host, gone: false }
    }

    /// Nothing is owed to it: it was answered, or has had time to ask and has not. Its
    /// own side connects again if it still wants something.
    fn is_idle(&mut self, now: Moment) -> bool {
        self.read();
        let had_time = self.told || self.gone || now.since(self.since) > TIME_TO_ASK;
        !self.host && had_time && !self.unread.contains(&b'\n') && self.unsent.is_empty()
    }

    fn read(&mut self) {
        let mut buffer = [0; 4096];
        while !self.gone {
            match recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.gone = true,
                Ok((length, _)) => self.unread.extend_from_slice(&buffer[..length]),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.gone = true,
            }
            if self.unread.len() > LONGEST_LINE {
                self.gone = true;
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.unread.iter().position(|&byte| byte == b'\n')?;
        let rest = self.unread.split_off(end + 1);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    fn say(&mut self, reply: &Reply) {
        self.unsent.push(&serde_json::to_vec(reply).unwrap_or_default());
        self.unsent.push(b"\n");
        self.flush();
        if self.unsent.len() > MOST_UNSENT {
            self.gone = true;
        }
    }

    fn flush(&mut self) {
        if !self.gone {
            self.gone = self.unsent.send(&self.stream) == Err(Gone);
        }
    }
}

#[cfg(test)]
mod tests;
