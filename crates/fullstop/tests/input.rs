//! Input for a command that reads late: nothing is lost, doubled or out of order, and the screen
//! of one with a terminal shows what was typed.

use fullstop::{Command, Error as Failure, Exit, Key, Ready, Runs, Size, Stdin, blocking};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// More than pipe and keeper hold together.
const MUCH: usize = 1 << 20;
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// A directory for the runs of one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<(Scratch, Runs), Box<dyn Error>> {
        let dir = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        fs::create_dir(&dir)?;
        let runs = Runs::at(&dir.join("state"))?;
        Ok((Scratch(dir), runs))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let until = Instant::now() + SOON;
        // A keeper whose run has ended may still be tidying.
        while fs::remove_dir_all(&self.0).is_err() && self.0.exists() && Instant::now() < until {}
    }
}

/// Who says for ever means it, and has no clock to be told by.
#[test]
fn patience_may_be_without_end() -> Result<(), Box<dyn Error>> {
    let (_dir, runs) = Scratch::new("for-ever")?;
    let run = blocking::start(runs.command("cat").stdin(Stdin::Pipe))?;
    let report = blocking::wait(async {
        run.wait_ready(&Ready::File("/".into()), Duration::MAX).await?;
        run.send_within(b"one\n", Duration::MAX).await?;
        run.close_stdin().await?;
        run.wait_for(Some(Duration::MAX)).await
    })?;
    assert_eq!(report.exit, Some(Exit::Code(0)));
    Ok(())
}

#[test]
fn a_command_that_reads_late_gets_all_of_it() -> Result<(), Box<dyn Error>> {
    let (dir, runs) = Scratch::new("reads-late")?;
    let (go, read) = (dir.0.join("go"), dir.0.join("read"));
    mknodat(CWD, &go, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
    let script = format!("cat {} >&2; exec cat > {}", go.display(), read.display());
    let all: Vec<u8> = (0..=255).cycle().take(MUCH).collect();
    let run = blocking::start(runs.command("sh").args(["-c", &script]).stdin(Stdin::Pipe))?;
    let report = blocking::wait(async {
        let mut input = run.input().with_patience(SOON);
        // It has taken what there is room for. What is dropped here is not sent.
        let cut = timeout(Duration::from_millis(300), input.send(&all)).await;
        assert!(cut.is_err() && input.sent() < all.len(), "{} bytes had room", input.sent());
        let opened = fs::OpenOptions::new().write(true).open(&go);
        drop(opened.expect("it waits to be told"));
        input.flush().await?;
        let sent = input.sent();
        assert!(sent > 0, "nothing had room");
        input.send(&all[sent..]).await?;
        assert_eq!(input.sent(), all.len());
        input.close().await?;
        let closed = input.send(b"more").await.expect_err("it is closed");
        assert!(matches!(&closed, Failure::PartlySent { .. }), "{closed}");
        run.wait_for(Some(SOON)).await
    })?;
    assert_eq!(report.exit, Some(Exit::Code(0)));
    assert!(fs::read(&read)? == all, "it has read something else");
    Ok(())
}

/// Somebody else closes it, while we wait for a command that never reads.
#[test]
fn who_waits_for_room_is_told_that_the_input_was_closed() -> Result<(), Box<dyn Error>> {
    let (_dir, runs) = Scratch::new("closed-meanwhile")?;
    let run = blocking::start(runs.command("sleep").arg("60").stdin(Stdin::Pipe))?;
    blocking::wait(async {
        let all = vec![b'x'; MUCH];
        let full = run.input().with_patience(Duration::ZERO).send(&all).await;
        assert!(full.is_err_and(|why| why.code() == "not-read"), "there was room");
        let mut input = run.input().with_patience(SOON);
        let mut send = Box::pin(input.send(&all));
        let early = timeout(Duration::from_millis(100), send.as_mut()).await;
        assert!(early.is_err(), "there is room again");
        run.close_stdin().await?;
        let why = send.await.expect_err("it was closed");
        assert_eq!(why.code(), "stdin-closed", "{why}");
        run.kill().await
    })?;
    Ok(())
}

#[test]
fn what_is_typed_is_seen_on_the_screen() -> Result<(), Box<dyn Error>> {
    let (_dir, runs) = Scratch::new("typed")?;
    let size = Size { rows: 7, cols: 41 };
    let script = r#"printf '\033]2;the title\007'; read line; printf '\033[2J\033[3;5H\033[32m%s' "$line"; read line"#;
    let run = Command::new("sh").args(["-c", script]).pty(size).runs(&runs);
    let run = blocking::start(run)?;
    let screen = blocking::wait(async {
        run.input().send(b"green").await?;
        run.input().send_keys(&[Key::enter()]).await?;
        let drawn = async {
            loop {
                let screen = run.screen().await?;
                if screen.cell(2, 4).is_some_and(|cell| cell.text() == "g") {
                    return Ok(screen);
                }
            }
        };
        timeout(SOON, drawn).await.expect("it was drawn")
    })?;
    assert_eq!((screen.size(), screen.title()), (size, "the title"));
    assert_eq!(screen.rows().nth(2).as_deref(), Some("    green"));
    let color = screen.cell(2, 8).map(|cell| cell.foreground());
    assert_eq!(color, Some(fullstop::Color::Indexed(2)));
    assert_eq!(screen.cursor().row, 2);
    blocking::wait(run.kill())?;
    Ok(())
}
