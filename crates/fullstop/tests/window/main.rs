//! The window of the library, against somebody who speaks like a keeper.

mod keeper;

use fullstop::attach::{Attachment, Next};
use fullstop::{AttachOptions, Error, Exit, Key, Reason, Run, Runs, Size, WindowEvent, blocking};
use fullstop_protocol::{Frame, Refusal, RefusalCode, ReplyKind, RequestKind};
use keeper::Keeper;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn run(keeper: &Keeper) -> Run {
    let runs = Runs::at(keeper.dir()).expect("the runs");
    fullstop::blocking::wait(runs.find(keeper.id().as_str())).expect("the run")
}

const SIZE: Size = Size { rows: 30, cols: 100 };

#[test]
fn it_shows_the_screen_then_what_comes_then_the_end() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, request) = keeper.window();
        let asked =
            RequestKind::Attach { size: Some(SIZE), view: false, owner: false, sizes: true };
        assert_eq!((request.kind, request.generation), (asked, Some(1)));
        client.say(&Frame::Screen { offset: 7, bytes: b"$ ".to_vec() });
        assert_eq!(client.typed(3), b"ls\r");
        let smaller = Size { rows: 10, cols: 20 };
        assert_eq!(client.next(), Some(Frame::Resize(smaller)));
        client.say(&Frame::Bytes(b"ls\r\n".to_vec()));
        client.report(&keeper.report(Reason::Exited, Exit::Code(3)));
        keeper
    });
    blocking::wait(async {
        let options = AttachOptions { size: Some(SIZE), ..AttachOptions::default() };
        let mut window = run.attach(options).await?;
        assert_eq!(window.next().await?, WindowEvent::Screen(b"$ ".to_vec()));
        window.type_bytes(b"ls\r").await?;
        window.resize(Size { rows: 10, cols: 20 }).await?;
        assert_eq!(window.next().await?, WindowEvent::Bytes(b"ls\r\n".to_vec()));
        for _ in 0..2 {
            let WindowEvent::Over(report) = window.next().await? else { panic!("it is over") };
            assert_eq!(report.exit, Some(Exit::Code(3)), "however often it is asked");
        }
        let unheard = window.type_bytes(b"x").await;
        assert!(matches!(unheard, Err(Error::WindowClosed { .. })), "{unheard:?}");
        assert_eq!(window.typed(), 3);
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn what_the_log_holds_beyond_a_dead_keeper_is_shown() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        // Three bytes were written before the window came, of which it sees the screen.
        keeper.log(b"abcdef");
        client.say(&Frame::Screen { offset: 3, bytes: b"[abc]".to_vec() });
        client.say(&Frame::Bytes(b"de".to_vec()));
        keeper.die();
        drop(client);
        keeper.log(b"ghi");
        keeper.end(&keeper.report(Reason::KeeperDied, Exit::Unknown));
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        assert_eq!(window.next().await?, WindowEvent::Screen(b"[abc]".to_vec()));
        assert_eq!(window.next().await?, WindowEvent::Bytes(b"de".to_vec()));
        assert_eq!(window.next().await?, WindowEvent::Bytes(b"fghi".to_vec()));
        let WindowEvent::Over(report) = window.next().await? else { panic!("it is over") };
        assert_eq!(report.reason(), Reason::KeeperDied);
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn what_a_dead_keeper_has_written_to_the_next_file_is_shown() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        keeper.log(&[b'-'; 38]);
        client.say(&Frame::Screen { offset: 38, bytes: b"[-]".to_vec() });
        keeper.log(b"abcdef");
        keeper.die();
        drop(client);
        keeper.end(&keeper.report(Reason::KeeperDied, Exit::Unknown));
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        assert_eq!(window.next().await?, WindowEvent::Screen(b"[-]".to_vec()));
        assert_eq!(window.next().await?, WindowEvent::Bytes(b"ab".to_vec()));
        assert_eq!(window.next().await?, WindowEvent::Bytes(b"cdef".to_vec()));
        assert!(matches!(window.next().await?, WindowEvent::Over(_)));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn a_keeper_that_only_hung_up_is_asked_again() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        drop(keeper.window());
        let (mut client, _) = keeper.window();
        client.say(&Frame::Screen { offset: 0, bytes: b"again".to_vec() });
        assert_eq!(client.next(), None);
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        assert_eq!(window.next().await?, WindowEvent::Screen(b"again".to_vec()));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn being_cut_short_in_the_middle_of_a_frame_loses_nothing() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let (go_on, wait) = channel::<()>();
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        let bytes = Frame::Bytes(b"whole".to_vec()).encode();
        for piece in bytes.chunks(3) {
            client.write(piece);
            let _ = wait.recv();
        }
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        loop {
            let soon = Duration::from_millis(5);
            match tokio::time::timeout(soon, window.next()).await {
                Err(_) => go_on.send(()).expect("the keeper goes on"),
                Ok(shown) => {
                    assert_eq!(shown?, WindowEvent::Bytes(b"whole".to_vec()));
                    drop(go_on);
                    return Ok(());
                }
            }
        }
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn who_only_looks_cannot_type_and_who_is_refused_is_told_why() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (client, request) = keeper.window();
        assert!(matches!(request.kind, RequestKind::Attach { view: true, size: None, .. }));
        let (mut other, _) = keeper.hear();
        let refusal = Refusal::new(RefusalCode::NoTerminal, "it has no terminal");
        other.answer(ReplyKind::Refused(refusal));
        drop(client);
        keeper
    });
    blocking::wait(async {
        let view = AttachOptions { view: true, ..AttachOptions::default() };
        let mut window = run.attach(view).await?;
        assert!(matches!(window.type_bytes(b"x").await, Err(Error::ViewOnly { .. })));
        let refused = run.attach(view).await.map(drop);
        assert_eq!(refused.unwrap_err().to_string(), "it has no terminal");
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn a_run_that_is_over_has_no_window() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    keeper.end(&keeper.report(Reason::Exited, Exit::Code(0)));
    let refused = blocking::wait(async { run.attach(AttachOptions::default()).await.map(drop) });
    let Err(Error::Ended(report)) = refused else { panic!("{refused:?}") };
    assert_eq!(report.exit, Some(Exit::Code(0)));
    let refused = blocking::wait(run.screen());
    assert!(matches!(refused, Err(Error::Ended(_))), "{refused:?}");
}

/// More than the socket of a keeper holds that does not read.
const MUCH: usize = 4 << 20;

#[test]
fn its_halves_work_at_once() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        // Shown while the other half waits for its keys to be read.
        client.say(&Frame::Bytes(b"one".to_vec()));
        let typed = client.typed(MUCH + 1);
        assert!(typed.starts_with(b"kk") && typed.ends_with(b"k\r"));
        client.report(&keeper.report(Reason::Exited, Exit::Code(0)));
        keeper
    });
    blocking::wait(async {
        let (mut reader, mut writer) = run.attach(AttachOptions::default()).await?.split();
        let typing = tokio::spawn(async move {
            writer.type_bytes(&vec![b'k'; MUCH]).await?;
            writer.type_keys(&[Key::enter()]).await?;
            Ok::<_, Error>(writer.typed())
        });
        assert_eq!(reader.next().await?, WindowEvent::Bytes(b"one".to_vec()));
        assert!(matches!(reader.next().await?, WindowEvent::Over(_)));
        assert_eq!(typing.await.expect("no panic")?, MUCH as u64 + 1);
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

/// The other half sends what a dropped call has taken, also if it waits already.
#[test]
fn a_dropped_write_is_typed_whole_or_not_at_all() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let (go_on, wait) = channel::<()>();
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        wait.recv().expect("the test goes on");
        let typed = client.typed(MUCH);
        assert!(typed.iter().all(|&byte| byte == b'a'), "what was not taken was typed");
        client.report(&keeper.report(Reason::Exited, Exit::Code(0)));
        keeper
    });
    blocking::wait(async {
        let (mut reader, mut writer) = run.attach(AttachOptions::default()).await?.split();
        let reading = tokio::spawn(async move { reader.next().await });
        tokio::task::yield_now().await;
        let soon = Duration::from_millis(20);
        let (much, more) = (vec![b'a'; MUCH], vec![b'b'; MUCH]);
        let cut = tokio::time::timeout(soon, writer.type_bytes(&much)).await;
        assert!(cut.is_err() && writer.typed() == MUCH as u64, "all of it was taken");
        let cut = tokio::time::timeout(soon, writer.type_bytes(&more)).await;
        assert!(cut.is_err() && writer.typed() == MUCH as u64, "nothing of it was taken");
        go_on.send(()).expect("the keeper waits");
        assert!(matches!(reading.await.expect("no panic")?, WindowEvent::Over(_)));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

/// The answer of a keeper that is asked again is not lost with the call that asked.
#[test]
fn being_cut_short_while_the_keeper_is_asked_again_loses_nothing() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let (go_on, wait) = channel::<()>();
    let script = thread::spawn(move || {
        drop(keeper.window());
        let (mut client, _) = keeper.hear();
        wait.recv().expect("the test goes on");
        client.let_in(&keeper);
        client.say(&Frame::Screen { offset: 0, bytes: b"again".to_vec() });
        assert_eq!(client.next(), None, "and it did not connect twice");
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        for _ in 0..3 {
            let cut = tokio::time::timeout(Duration::from_millis(20), window.next()).await;
            assert!(cut.is_err(), "nobody has answered");
        }
        go_on.send(()).expect("the keeper waits");
        let shown = tokio::time::timeout(Duration::from_mins(1), window.next()).await;
        assert_eq!(shown.expect("it is shown")?, WindowEvent::Screen(b"again".to_vec()));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn an_owner_says_when_all_was_taken() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, request) = keeper.window();
        assert!(matches!(request.kind, RequestKind::Attach { owner: true, .. }));
        client.say(&Frame::Bytes(b"all".to_vec()));
        client.say(&Frame::All);
        assert_eq!(client.next(), Some(Frame::Shown { bytes: 3, refusal: None }));
        client.report(&keeper.report(Reason::Exited, Exit::Code(0)));
        keeper
    });
    blocking::wait(async {
        let owner = AttachOptions { owner: true, ..AttachOptions::default() };
        let mut window = run.attach(owner).await?;
        assert_eq!(window.next().await?, WindowEvent::Bytes(b"all".to_vec()));
        assert!(matches!(window.next().await?, WindowEvent::Over(_)));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn one_look_at_the_screen_leaves_nothing_behind() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, request) = keeper.window();
        assert!(matches!(request.kind, RequestKind::Attach { view: true, size: None, .. }));
        client.say(&Frame::Resize(SIZE));
        let drawn = b"\x1b[?1049h\x1b]2;title\x07\x1b[30;98Hend".to_vec();
        client.say(&Frame::Screen { offset: 0, bytes: drawn });
        assert_eq!(client.next(), None, "it has left");
        keeper
    });
    let screen = blocking::wait(run.screen()).expect("a screen");
    assert_eq!((screen.size(), screen.title()), (SIZE, "title"));
    assert!(screen.is_alternate() && screen.text().ends_with("end"), "{:?}", screen.text());
    assert_eq!(screen.rows().last().map(|row| row.trim_start().to_owned()), Some("end".to_owned()));
    script.join().expect("the keeper's side");
}

/// Without a runtime: whoever is driven by another loop.
#[test]
fn an_attachment_says_what_to_do_and_waits_for_nothing() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        client.say(&Frame::Screen { offset: 0, bytes: b"screen".to_vec() });
        keeper.log(b"rest");
        keeper.die();
        drop(client);
        keeper.end(&keeper.report(Reason::KeeperDied, Exit::Unknown));
        keeper
    });
    let attachment = Attachment::open(&run, AttachOptions::default());
    let mut attachment = blocking::wait(attachment).expect("attached");
    let (mut shown, mut works) = (Vec::new(), 0);
    let report = loop {
        match attachment.advance().expect("something to do") {
            Next::Show(WindowEvent::Over(report)) => break report,
            Next::Show(other) => shown.push(other),
            Next::Work(work) => {
                works += 1;
                assert!(matches!(attachment.advance(), Ok(Next::Wait)), "it is given out once");
                let finished = blocking::wait(async { Ok(work.run().await) }).expect("done");
                attachment.finish(finished).expect("taken up");
            }
            Next::Wait => {
                let descriptor = attachment.descriptor().expect("something to wait for");
                keeper::wait_for(descriptor, "a word of the keeper");
            }
        }
    };
    assert_eq!(
        shown,
        [WindowEvent::Screen(b"screen".to_vec()), WindowEvent::Bytes(b"rest".to_vec())]
    );
    assert_eq!(report.reason(), Reason::KeeperDied);
    assert_eq!(attachment.report(), Some(&*report));
    assert_eq!(works, 3, "to ask again, and to read the log to its end");
    assert!(attachment.is_over() && attachment.descriptor().is_none());
    script.join().expect("the keeper's side");
}
