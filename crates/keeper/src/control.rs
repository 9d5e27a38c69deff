//! Requests from others: a socket in the run's directory, and the host's own line.
//!
//! Nothing here blocks. A client that does not read its answers is dropped; an order that came
//! in whole is obeyed even if its sender is gone.

use crate::backlog::{Backlog, Gone};
use crate::engine::timespec;
use fullstop_cage::linux::{Peer, PeerProcess, now, peer, peer_process};
use fullstop_core::words::Moment;
use fullstop_protocol::{
    Hello, PROTOCOL_VERSION, Refusal, RefusalCode, Reply, ReplyKind, Request, RequestKind,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Enough for every window and script of one person.
const MOST_CLIENTS: usize = 256;
/// A client this far behind does not read.
const MOST_UNSENT: usize = 1 << 20;
/// No order is this long.
const LONGEST_LINE: usize = 1 << 16;
/// A client asks as soon as it has connected. After this time without a request its connection
/// may be closed.
const TIME_TO_ASK: Duration = Duration::from_secs(1);
/// So many lines of one client are heard before others have their turn, and what was accepted is
/// done.
const MOST_AT_ONCE: usize = 16;
/// After this time with unread answers a client's connection may be closed as well.
const TIME_TO_READ: Duration = Duration::from_millis(250);
/// When no connection can be accepted (no descriptor left), it is not tried again at once.
const DEAF_FOR: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct Control {
    listener: Option<OwnedFd>,
    clients: Vec<Client>,
    deaf_until: Option<Moment>,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a question of its own.
struct Client {
    stream: OwnedFd,
    peer: Option<Peer>,
    unread: Vec<u8>,
    unsent: Backlog,
    since: Moment,
    stage: Stage,
    /// It has said all that it has to say.
    ended: bool,
    /// It cannot be told anything any more.
    gone: bool,
    /// Since when it has not read what it was told.
    behind_since: Option<Moment>,
    /// It was answered.
    told: bool,
    role: Role,
    /// It asked for the run, and is to be told that this is born, or is not to be.
    awaits_birth: bool,
    /// The request by which it asked for samples.
    subscription: Option<u64>,
    awaited_room: Option<AwaitedRoom>,
}

/// A request that is answered once so much input has room.
#[derive(Clone, Copy, Debug)]
struct AwaitedRoom {
    id: u64,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    /// It becomes the host with its next request.
    Adopter,
    /// The process that the run belongs to.
    Host,
}

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not said which version of the wire it speaks.
    New,
    Greeted,
    /// Nothing more is heard, and it is let go once it has been told all.
    Leaving,
}

/// A connection that becomes something else.
#[derive(Debug)]
pub struct Handed {
    pub stream: OwnedFd,
    /// What its other side has said already, and has not been told yet.
    pub unread: Vec<u8>,
    pub unsent: Backlog,
}

/// A request, or why a line is none, and where to answer it.
pub struct Order {
    pub from: usize,
    pub peer: Option<Peer>,
    pub is_host: bool,
    /// The id that the answer repeats.
    pub id: u64,
    pub request: Result<Request, Refusal>,
}

impl Control {
    pub fn listen(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    pub fn host(&mut self, stream: OwnedFd) {
        let _ = rustix::io::ioctl_fionbio(&stream, true);
        let host = Client::new(stream, Role::Host);
        self.clients.push(Client { awaits_birth: true, ..host });
    }

    /// The process that was at the other end of the host's line when that was made.
    pub fn host_peer(&self) -> Option<Peer> {
        self.clients.iter().find(|client| client.is_host())?.peer
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        let listener = self.listener.iter().map(AsRawFd::as_raw_fd);
        listener.chain(self.clients.iter().map(|client| client.stream.as_raw_fd())).collect()
    }

    pub fn is_open(&self) -> bool {
        self.listener.is_some()
    }

    pub fn has_host(&self) -> bool {
        self.clients.iter().any(Client::is_host)
    }

    pub fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let deaf = self.deaf_until.is_some_and(|until| now() < until);
        let listener = self.listener.iter().filter(move |_| !deaf);
        let clients = self.clients.iter().map(|client| {
            let out = if client.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            // The end of what it says is readable for ever.
            let read = if client.ended { PollFlags::empty() } else { PollFlags::IN };
            PollFd::new(&client.stream, read | out)
        });
        listener.map(|fd| PollFd::new(fd, PollFlags::IN)).chain(clients)
    }

    /// A request has come whole and is not heard: others have their turn first, or a request to
    /// attach was before it, behind which nothing is read until that is answered.
    pub fn has_lines(&self) -> bool {
        self.clients.iter().any(Client::has_line)
    }

    /// When to look again though nothing happens.
    pub fn patience(&self) -> Option<Duration> {
        if self.has_lines() {
            return Some(Duration::ZERO);
        }
        self.deaf_until.map(|until| until.since(now())).filter(|wait| !wait.is_zero())
    }

    /// Lets newcomers in and reads what was said. Returns the orders. Whether the host has left
    /// is to be asked once they are heard: one of them may make another the host.
    pub fn service(&mut self) -> Vec<Order> {
        self.accept();
        let mut orders = Vec::new();
        for (from, client) in self.clients.iter_mut().enumerate() {
            client.flush();
            client.read();
            for _ in 0..MOST_AT_ONCE {
                let Some(line) = client.line() else { break };
                let Some((id, request)) = client.hear(&line) else { continue };
                let attaches = request.as_ref().is_ok_and(Request::attaches);
                let (peer, is_host) = (client.peer, client.is_host());
                orders.push(Order { from, peer, is_host, id, request });
                // What follows is not said in lines any more, if that is accepted.
                if attaches {
                    break;
                }
            }
        }
        orders
    }

    /// Forgets the clients that have left; the requests of this turn must have been answered.
    pub fn tidy(&mut self) {
        self.clients.iter_mut().for_each(Client::leave);
        self.clients.retain(|client| !client.is_over());
    }

    fn accept(&mut self) {
        loop {
            // A connection that is not accepted now stays in the socket's queue.
            if self.clients.len() >= MOST_CLIENTS {
                if !self.is_awaited() {
                    return self.deaf_until = None;
                }
                if !self.make_room() {
                    return self.deaf_until = Some(now() + DEAF_FOR);
                }
            }
            let Some(listener) = &self.listener else { return };
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(stream) => {
                    let client = Client::new(stream, Role::Client);
                    if is_ours(client.peer) {
                        self.clients.push(client);
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return self.deaf_until = None,
                // Where there is no descriptor left, a client that is done makes room.
                Err(Errno::MFILE) if self.make_room() => {}
                Err(_) => return self.deaf_until = Some(now() + DEAF_FOR),
            }
        }
    }

    /// Whether a client waits to be let in.
    fn is_awaited(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| {
            let mut fds = [PollFd::new(listener, PollFlags::IN)];
            poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
        })
    }

    /// Drops an idle client; first one that waits for nothing, then one that waits for samples or
    /// for room; never a client whose request is still to be read or answered. A client that waits
    /// for room connects and asks again: else a command that does not read its input would keep the
    /// socket full, and a stop out.
    fn make_room(&mut self) -> bool {
        let now = now();
        let mut idle = |waits: bool| {
            let is_idle = |client: &mut Client| client.is_idle(now);
            self.clients.iter_mut().position(|client| client.waits() == waits && is_idle(client))
        };
        let idle = idle(false).or_else(|| idle(true));
        idle.map(|at| self.clients.remove(at)).is_some()
    }

    pub fn answer(&mut self, to: usize, id: u64, kind: ReplyKind) {
        if let Some(client) = self.clients.get_mut(to) {
            client.told = true;
            client.say(&Reply { id, kind });
        }
    }

    /// From now on this client is told each sample.
    pub fn subscribe(&mut self, to: usize, id: u64) {
        if let Some(client) = self.clients.get_mut(to) {
            client.subscription = Some(id);
        }
    }

    pub fn has_subscribers(&self) -> bool {
        self.clients.iter().any(|client| client.subscription.is_some())
    }

    /// This client is answered once so much input has room.
    pub fn await_room(&mut self, from: usize, id: u64, bytes: usize) {
        if let Some(client) = self.clients.get_mut(from) {
            client.awaited_room = Some(AwaitedRoom { id, bytes });
            // The hello has waited for the answer, which may take long.
            client.flush();
        }
    }

    pub fn awaits_room(&self) -> bool {
        self.clients.iter().any(|client| client.awaited_room.is_some())
    }

    /// Answers the clients that wait for room, if there is an answer for their number of bytes.
    pub fn tell_room(&mut self, answer: impl Fn(usize) -> Option<ReplyKind>) {
        for client in &mut self.clients {
            if let Some(AwaitedRoom { id, bytes }) = client.awaited_room
                && let Some(kind) = answer(bytes)
            {
                client.awaited_room = None;
                client.told = true;
                client.say(&Reply { id, kind });
            }
        }
    }

    /// A subscriber that has not read the last sample misses this one.
    pub fn tell_subscribers(&mut self, sample: &ReplyKind) {
        for client in self.clients.iter_mut().filter(|client| client.unsent.is_empty()) {
            if let Some(id) = client.subscription {
                client.say(&Reply { id, kind: sample.clone() });
            }
        }
    }

    /// Gives a connection away, once its order was answered.
    pub fn hand_over(&mut self, from: usize) -> Option<Handed> {
        let client =
            self.clients.get_mut(from).filter(|client| !client.is_host() && !client.has_left())?;
        let stream = client.stream.try_clone().ok()?;
        client.gone = true;
        Some(Handed {
            stream,
            unread: std::mem::take(&mut client.unread),
            unsent: std::mem::take(&mut client.unsent),
        })
    }

    /// Tells the host that the run is born, or is not to be.
    pub fn tell_host(&mut self, kind: &ReplyKind) {
        for client in &mut self.clients {
            if std::mem::take(&mut client.awaits_birth) {
                client.told = true;
                client.say(&Reply { id: 0, kind: kind.clone() });
            }
        }
    }

    /// Who has made this connection.
    pub fn process(&self, of: usize) -> Option<PeerProcess> {
        peer_process(&self.clients.get(of)?.stream)
    }

    /// This client is to become the host. It is not yet: see [`Control::make_host`].
    pub fn await_adopter(&mut self, from: usize) {
        if let Some(client) = self.clients.get_mut(from) {
            client.role = Role::Adopter;
        }
    }

    pub fn is_host(&self, from: usize) -> bool {
        self.clients.get(from).is_some_and(Client::is_host)
    }

    pub fn is_adopter(&self, from: usize) -> bool {
        self.clients.get(from).is_some_and(|client| client.role == Role::Adopter)
    }

    /// Whether the client that was to become the host has left before it did, and none of its
    /// requests is still to be read.
    pub fn adopter_has_left(&self) -> bool {
        let is_silent = |client: &Client| client.has_left() && !client.unread.contains(&b'\n');
        self.clients.iter().any(|client| client.role == Role::Adopter && is_silent(client))
    }

    /// The adopter is a client like any other again.
    pub fn refuse_adopter(&mut self) {
        for client in self.clients.iter_mut().filter(|client| client.role == Role::Adopter) {
            client.role = Role::Client;
        }
    }

    /// The adopter is the host now: only the end of its line is the end of the host.
    pub fn make_host(&mut self, from: usize) {
        for (at, client) in self.clients.iter_mut().enumerate() {
            client.role = if at == from { Role::Host } else { Role::Client };
        }
    }

    /// Whether the host's line has come to its end, and all that was said on it is heard.
    pub fn host_has_left(&self) -> bool {
        let has_left = |client: &Client| client.has_left() && !client.has_line();
        self.clients.iter().any(|client| client.is_host() && has_left(client))
    }

    /// Waits a little for clients that read: what was said last matters most.
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

/// Only the owner's uid may steer a run, and root, which could anyway.
fn is_ours(peer: Option<Peer>) -> bool {
    let own = rustix::process::geteuid().as_raw();
    peer.is_some_and(|peer| peer.uid == own || peer.uid == 0)
}

impl Client {
    fn new(stream: OwnedFd, role: Role) -> Client {
        Client {
            peer: peer(&stream),
            stream,
            unread: Vec::new(),
            unsent: Backlog::default(),
            since: now(),
            stage: if role == Role::Client { Stage::New } else { Stage::Greeted },
            ended: false,
            gone: false,
            behind_since: None,
            told: false,
            role,
            awaits_birth: false,
            subscription: None,
            awaited_room: None,
        }
    }

    fn waits(&self) -> bool {
        self.subscription.is_some() || self.awaited_room.is_some()
    }

    fn is_host(&self) -> bool {
        self.role == Role::Host
    }

    /// The request that this line is, or why it is none, with its id. A hello is answered here.
    fn hear(&mut self, line: &[u8]) -> Option<(u64, Result<Request, Refusal>)> {
        if self.stage == Stage::Leaving {
            return None;
        }
        if let Some(hello) = Hello::from_json(line) {
            self.greet(&hello);
            // A request that came with it is answered in the same breath.
            if !self.unread.contains(&b'\n') {
                self.flush();
            }
            return None;
        }
        if self.stage == Stage::New {
            let no_hello = Refusal::new(RefusalCode::NoHello, "a connection begins with a hello")
                .with_hint(format!(r#"{{"type":"hello","protocol":{PROTOCOL_VERSION}}}"#));
            self.stage = Stage::Leaving;
            return Some((0, Err(no_hello)));
        }
        Some(match serde_json::from_slice::<Request>(line) {
            Ok(request) => (request.id, Ok(request)),
            Err(error) => unreadable(line, &error),
        })
    }

    fn greet(&mut self, hello: &Hello) {
        self.stage = Stage::Greeted;
        self.send(&Hello::of_keeper());
        if hello.protocol > PROTOCOL_VERSION {
            let message = format!("this keeper speaks version {PROTOCOL_VERSION} of the wire");
            let refusal = Refusal::new(RefusalCode::UnsupportedProtocol, message);
            self.say(&Reply { id: 0, kind: ReplyKind::Refused(refusal) });
            self.stage = Stage::Leaving;
        }
    }

    /// A client that is leaving goes once it has been told all.
    fn leave(&mut self) {
        self.gone |= self.stage == Stage::Leaving && self.unsent.is_empty();
    }

    /// Nothing is owed to it: it was answered, or has had time to ask and has not. Its
    /// own side connects again if it still wants something.
    fn is_idle(&mut self, now: Moment) -> bool {
        self.read();
        let had_time = self.told || self.has_left() || now.since(self.since) > TIME_TO_ASK;
        let reads = self.behind_since.is_none_or(|since| now.since(since) < TIME_TO_READ);
        let is_owed = !self.unsent.is_empty() && reads;
        self.role == Role::Client && had_time && !self.unread.contains(&b'\n') && !is_owed
    }

    fn has_left(&self) -> bool {
        self.ended || self.gone
    }

    /// Nothing more comes from it, all that came is heard, and nothing is owed to it.
    fn is_over(&self) -> bool {
        let is_told = self.gone || self.ended && self.unsent.is_empty();
        is_told && !self.has_line()
    }

    /// A request has come whole and is not heard.
    fn has_line(&self) -> bool {
        self.unread.contains(&b'\n')
    }

    fn read(&mut self) {
        let mut buffer = [0; 4096];
        // What has come whole is heard first; the rest waits in the socket.
        while !self.has_left() && self.unread.len() <= LONGEST_LINE {
            match recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.ended = true,
                Ok((length, _)) => self.unread.extend_from_slice(&buffer[..length]),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.gone = true,
            }
        }
        // No request is this long.
        self.gone |= self.unread.len() > LONGEST_LINE && !self.unread.contains(&b'\n');
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.unread.iter().position(|&byte| byte == b'\n')?;
        let rest = self.unread.split_off(end + 1);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    fn say(&mut self, reply: &Reply) {
        self.send(reply);
        self.flush();
        if self.unsent.len() > MOST_UNSENT {
            self.gone = true;
        }
    }

    /// Goes with what is said next.
    fn send(&mut self, line: &impl Serialize) {
        self.unsent.push(&serde_json::to_vec(line).unwrap_or_default());
        self.unsent.push(b"\n");
    }

    fn flush(&mut self) {
        // A client that has shut its sending side may still read. A client that cannot be written
        // to may have sent a request before.
        if self.unsent.send(&self.stream) == Err(Gone) {
            self.read();
            self.gone = true;
        }
        if self.unsent.is_empty() {
            self.behind_since = None;
        } else {
            self.behind_since.get_or_insert_with(now);
        }
    }
}

/// Why a line is no request, and the id that it has if it is an object.
fn unreadable(line: &[u8], error: &serde_json::Error) -> (u64, Result<Request, Refusal>) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Beginning {
        id: u64,
        #[serde(rename = "type")]
        kind: String,
    }
    let Beginning { id, kind } = serde_json::from_slice(line).unwrap_or_default();
    let refusal = if kind.is_empty() || RequestKind::TYPES.contains(&kind.as_str()) {
        Refusal::new(RefusalCode::InvalidRequest, format!("this is no request: {error}"))
    } else {
        Refusal::new(RefusalCode::UnknownRequest, format!("this keeper knows no request {kind:?}"))
            .with_hint(format!("it knows {}", RequestKind::TYPES.join(", ")))
    };
    (id, Err(refusal))
}

#[cfg(test)]
mod tests;
