use super::*;
use fullstop_protocol::Failure;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

const HELLO: &[u8] = b"{\"type\":\"hello\",\"protocol\":2}\n";
const STOP: &[u8] =
    b"{\"type\":\"hello\",\"protocol\":2}\n{\"id\":7,\"type\":\"stop\",\"generation\":1}\n";

struct Door {
    control: Control,
    path: PathBuf,
}

impl Door {
    fn open(name: &str) -> Door {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        rustix::net::listen(&listener, 4096).expect("a long queue");
        listener.set_nonblocking(true).expect("no waiting");
        let mut control = Control::default();
        control.listen(listener.into());
        Door { control, path }
    }

    fn client(&self, says: &[u8]) -> UnixStream {
        let mut client = UnixStream::connect(&self.path).expect("connected");
        client.write_all(says).expect("said");
        client
    }

    /// One turn of the keeper: how many orders it hears, and answers.
    fn hear(&mut self) -> usize {
        let orders = self.control.service();
        let mut heard = 0;
        for Order { from, id, request, .. } in orders {
            let refusal = request.map_or_else(
                |refusal| refusal,
                |request| {
                    assert!(matches!(request.kind, RequestKind::Stop { .. }), "{request:?}");
                    assert_eq!((request.id, request.generation), (7, Some(1)));
                    heard += 1;
                    Refusal::new(RefusalCode::Superseded, "heard")
                },
            );
            self.control.answer(from, id, ReplyKind::Refused(refusal));
        }
        self.control.tidy();
        heard
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_answered(client: &mut UnixStream) -> bool {
    client.set_nonblocking(true).expect("no waiting");
    let mut answer = [0; 64];
    client.read(&mut answer).is_ok_and(|length| length > 0)
}

/// More than there is room for come at once, each with a stop: nobody is sent away, and
/// all are heard in time.
#[test]
fn a_new_client_never_pushes_out_the_stop_of_another() {
    let mut door = Door::open("crowd");
    let mut clients: Vec<UnixStream> = (0..=2 * MOST_CLIENTS).map(|_| door.client(STOP)).collect();
    let mut heard = 0;
    for _ in 0..3 {
        door.control.deaf_until = None;
        heard += door.hear();
    }
    assert_eq!(heard, clients.len());
    // The last turn lets in who waited at the door; the others are done, and may go.
    assert!(clients.iter_mut().all(is_answered));
}

/// A crowd that was answered, or never asks, keeps nobody out.
#[test]
fn who_is_idle_makes_room() {
    let mut door = Door::open("idle");
    let silent: Vec<UnixStream> = (0..MOST_CLIENTS).map(|_| door.client(b"")).collect();
    assert_eq!(door.hear(), 0);
    let late = door.client(STOP);
    // However long this test was kept from running.
    let mut came = |since| {
        door.control.deaf_until = None;
        door.control.clients.iter_mut().for_each(|client| client.since = since);
        door.hear()
    };
    assert_eq!(came(now() + Duration::from_hours(1)), 0, "they have only just come");
    assert_eq!(came(Moment::default()), 1);
    drop((silent, late));
}

/// What a client was told, line by line.
fn told(client: &mut UnixStream) -> Vec<serde_json::Value> {
    client.set_nonblocking(true).expect("no waiting");
    let mut text = Vec::new();
    let _ = client.read_to_end(&mut text);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

#[test]
fn a_connection_begins_with_a_hello() {
    let mut door = Door::open("hello");
    let mut rude = door.client(b"{\"id\":7,\"type\":\"stop\"}\n{\"id\":8,\"type\":\"stop\"}\n");
    let mut polite = door.client(HELLO);
    let mut later = door.client(b"{\"type\":\"hello\",\"protocol\":3}\n");
    assert_eq!(door.hear(), 0);
    let (rude, polite, later) = (told(&mut rude), told(&mut polite), told(&mut later));
    assert_eq!((rude.len(), &rude[0]["code"]), (1, &"no-hello".into()));
    assert_eq!((polite.len(), &polite[0]["type"]), (1, &"hello".into()));
    assert_eq!(polite[0]["can"][0], "stop");
    assert_eq!((later.len(), &later[1]["code"]), (2, &"unsupported-protocol".into()));
    // Who cannot be understood is let go.
    assert_eq!(door.control.clients.len(), 1);
}

#[test]
fn what_is_no_request_is_refused_by_its_id() {
    let mut door = Door::open("strange");
    let mut client = door.client(HELLO);
    for line in [
        &b"{\"id\":1,\"type\":\"dance\"}\n"[..],
        b"{\"id\":2,\"type\":\"signal\",\"signal\":\"nope\"}\n",
        b"{\"id\":3,\"type\":\"stop\",\"reason\":\"rebooted\"}\n",
        b"{\"id\":4}\n",
        b"stop\n",
        b"{\"id\":7,\"generation\":1,\"type\":\"stop\",\"protocol\":2,\"by\":\"Ada\"}\n",
    ] {
        client.write_all(line).expect("said");
    }
    assert_eq!(door.hear(), 1, "an unknown field is ignored");
    let told = told(&mut client);
    let answers: Vec<_> = told[1..].iter().map(|it| (&it["id"], &it["code"])).collect();
    let wanted = [
        (1, "unknown-request"),
        (2, "invalid-request"),
        (3, "invalid-request"),
        (4, "invalid-request"),
        (0, "invalid-request"),
        (7, "superseded"),
    ];
    assert_eq!(answers.len(), wanted.len(), "{told:?}");
    for ((id, code), (wanted_id, wanted_code)) in answers.into_iter().zip(wanted) {
        assert_eq!((id, code), (&wanted_id.into(), &wanted_code.into()));
    }
}

/// A subscriber is owed the next sample, and goes only if all who are idle do not suffice.
#[test]
fn who_subscribes_makes_room_last() {
    let mut door = Door::open("subscribers");
    let subscriber = door.client(STOP);
    assert_eq!(door.hear(), 1);
    door.control.subscribe(0, 7);
    let idle: Vec<UnixStream> = (1..MOST_CLIENTS).map(|_| door.client(STOP)).collect();
    assert_eq!(door.hear(), idle.len());
    let late = door.client(STOP);
    door.control.deaf_until = None;
    assert_eq!(door.hear(), 1);
    assert!(door.control.has_subscribers());
    drop((subscriber, idle, late));
}

/// An order that came in whole is obeyed even if its sender is gone; one without a hello is not.
#[test]
fn who_has_left_is_heard() {
    let mut door = Door::open("left");
    drop(door.client(STOP));
    assert_eq!(door.hear(), 1);
    drop(door.client(b"{\"id\":7,\"type\":\"stop\",\"generation\":1}\n"));
    assert_eq!(door.hear(), 0);
}

/// `nc -N` says all that it has to say, closes its side, and listens.
#[test]
fn who_says_no_more_hears_the_answer() {
    let mut door = Door::open("half");
    let mut client = door.client(STOP);
    client.shutdown(std::net::Shutdown::Write).expect("half closed");
    assert_eq!(door.hear(), 1);
    let told = told(&mut client);
    assert_eq!((told.len(), &told[1]["code"]), (2, &"superseded".into()));
}

/// So many requests at once are heard one part after the other; what is no request is not
/// heard to its end.
#[test]
fn a_long_row_of_requests_is_heard_to_its_end() {
    let mut door = Door::open("row");
    let client = door.client(HELLO);
    client.set_nonblocking(true).expect("no waiting");
    let request = b"{\"id\":7,\"type\":\"stop\",\"generation\":1}\n";
    let all = request.repeat(4000);
    let (mut said, mut heard, mut answers) = (0, 0, vec![0; 1 << 20]);
    for _ in 0..4000 {
        if let Some(rest) = all.get(said..).filter(|rest| !rest.is_empty()) {
            said += (&client).write(rest).unwrap_or_default();
        }
        // Who does not read its answers is dropped at last.
        let _ = (&client).read(&mut answers);
        heard += door.hear();
    }
    assert_eq!(heard, 4000);
    let endless = door.client(&vec![b'x'; LONGEST_LINE + 2]);
    door.hear();
    assert_eq!(door.control.clients.len(), 1);
    drop((client, endless));
}

/// A request that comes before the birth is answered; that it is born is told all the same.
#[test]
fn a_host_is_told_of_the_birth_whatever_it_has_asked_before() {
    let (mut host, ours) = UnixStream::pair().expect("a pair");
    let mut control = Control::default();
    control.host(ours.into());
    host.write_all(b"{\"id\":3,\"type\":\"stay\"}\n").expect("said");
    let orders = control.service();
    assert!(orders[0].is_host && orders[0].request.is_ok());
    let failed = |message: &str| ReplyKind::Failed(Failure::of_status(125, message));
    control.answer(orders[0].from, orders[0].id, failed("asked"));
    control.tell_host(&failed("born"));
    control.tell_host(&failed("born again"));
    let told = told(&mut host);
    let ids: Vec<_> = told.iter().map(|it| (&it["id"], &it["message"])).collect();
    assert_eq!(ids, [(&3.into(), &"asked".into()), (&0.into(), &"born".into())]);
    assert!(control.hand_over(0).is_none(), "it is no window");
}

/// A crowd that reads nothing of what it is told does not keep a stop out.
#[test]
fn who_does_not_read_makes_room() {
    let mut door = Door::open("deaf");
    let deaf: Vec<UnixStream> = (0..MOST_CLIENTS).map(|_| door.client(STOP)).collect();
    assert_eq!(door.hear(), deaf.len());
    let long = Refusal::new(RefusalCode::Superseded, "x".repeat(MOST_UNSENT / 2));
    for client in 0..deaf.len() {
        door.control.subscribe(client, 7);
        door.control.answer(client, 7, ReplyKind::Refused(long.clone()));
    }
    let late = door.client(STOP);
    let mut behind_since = |since| {
        door.control.deaf_until = None;
        door.control.clients.iter_mut().for_each(|client| client.behind_since = Some(since));
        door.hear()
    };
    assert_eq!(behind_since(now() + Duration::from_hours(1)), 0, "they may be about to read it");
    assert_eq!(behind_since(Moment::default()), 1);
    drop((deaf, late));
}

/// A long answer goes whole to a client that has closed its side, however slowly it reads.
#[test]
fn a_long_answer_to_one_who_says_no_more() {
    let mut door = Door::open("long");
    let mut client = door.client(HELLO);
    client.write_all(b"{\"id\":7,\"type\":\"stop\",\"generation\":1}\n").expect("said");
    client.shutdown(std::net::Shutdown::Write).expect("half closed");
    let orders = door.control.service();
    let long = Refusal::new(RefusalCode::Superseded, "x".repeat(MOST_UNSENT - 4096));
    door.control.answer(orders[0].from, orders[0].id, ReplyKind::Refused(long));
    let mut heard = 0;
    let mut buffer = vec![0; 1 << 16];
    client.set_nonblocking(true).expect("no waiting");
    for _ in 0..1000 {
        door.control.tidy();
        heard += client.read(&mut buffer).unwrap_or_default();
        door.control.service();
    }
    assert!(heard > MOST_UNSENT - 4096, "{heard} bytes");
    assert!(door.control.clients.is_empty(), "it is let go then");
}

/// One that asks without end is heard in parts, and others between them.
#[test]
fn a_row_of_requests_is_heard_in_parts() {
    let mut door = Door::open("parts");
    let client = door.client(&[HELLO, &STOP[HELLO.len()..].repeat(3 * MOST_AT_ONCE)].concat());
    let mut parts = Vec::new();
    while parts.iter().sum::<usize>() < 3 * MOST_AT_ONCE && parts.len() < 10 {
        parts.push(door.hear());
    }
    assert!(parts.len() > 2 && parts.iter().all(|part| *part <= MOST_AT_ONCE), "{parts:?}");
    assert!(!door.control.has_lines());
    drop(client);
}

const AWAIT_ROOM: &[u8] =
    b"{\"type\":\"hello\",\"protocol\":2}\n{\"id\":7,\"type\":\"await-room\",\"bytes\":100}\n";

#[test]
fn who_waits_for_room_is_answered_once_there_is_some() {
    let mut door = Door::open("room");
    let mut client = door.client(AWAIT_ROOM);
    let orders = door.control.service();
    assert_eq!(orders.len(), 1);
    door.control.await_room(orders[0].from, orders[0].id, 100);
    let refused = |message: &str| ReplyKind::Refused(Refusal::new(RefusalCode::NotHost, message));
    let room = |room: usize| move |bytes: usize| (bytes <= room).then(|| refused("there is room"));
    door.control.tell_room(room(99));
    assert_eq!(told(&mut client).len(), 1, "nothing but the hello");
    assert!(door.control.awaits_room());
    door.control.tell_room(room(100));
    let told = told(&mut client);
    assert_eq!((told.len(), &told[0]["id"]), (1, &7.into()));
    assert!(!door.control.awaits_room(), "it is answered once");
}

/// A command that reads nothing must not keep a stop out.
#[test]
fn who_waits_for_room_makes_room_for_a_stop() {
    let mut door = Door::open("waiters");
    let waiting: Vec<UnixStream> = (0..MOST_CLIENTS).map(|_| door.client(AWAIT_ROOM)).collect();
    let orders = door.control.service();
    assert_eq!(orders.len(), MOST_CLIENTS);
    for order in &orders {
        door.control.await_room(order.from, order.id, 100);
    }
    let late = door.client(STOP);
    door.control.deaf_until = None;
    door.control.clients.iter_mut().for_each(|client| client.since = Moment::default());
    assert_eq!(door.hear(), 1);
    drop((waiting, late));
}

/// A host that takes its start back and hangs up, just before it is told that the run is born.
#[test]
fn an_order_is_heard_though_its_sender_cannot_be_told_anything_any_more() {
    let (mut host, ours) = UnixStream::pair().expect("a pair");
    let mut control = Control::default();
    control.host(ours.into());
    host.write_all(b"{\"id\":0,\"type\":\"stop\"}\n").expect("said");
    drop(host);
    control.tell_host(&ReplyKind::Failed(Failure::of_status(125, "born")));
    control.tidy();
    let orders = control.service();
    let host_left = control.host_has_left();
    assert_eq!(orders.len(), 1);
    assert!(host_left);
    control.tidy();
    assert!(control.clients.is_empty());
}

/// That the host has left is told behind all that it has said.
#[test]
fn all_that_a_host_has_said_is_heard_before_it_has_left() {
    let (mut host, ours) = UnixStream::pair().expect("a pair");
    let mut control = Control::default();
    control.host(ours.into());
    let all = 2 * MOST_AT_ONCE + 1;
    host.write_all(&b"{\"id\":1,\"type\":\"leave\"}\n".repeat(all)).expect("said");
    drop(host);
    let mut heard = 0;
    for _ in 0..10 {
        let orders = control.service();
        let host_left = control.host_has_left();
        heard += orders.len();
        for order in &orders {
            let refusal = Refusal::new(RefusalCode::NotHost, "heard");
            control.answer(order.from, order.id, ReplyKind::Refused(refusal));
        }
        assert_eq!(host_left, heard == all && !orders.is_empty());
        control.tidy();
    }
    assert_eq!(heard, all);
}
