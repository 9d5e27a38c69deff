//! What the scenarios of this suite share: bytes to be sent, somebody who reads them,
//! and a look at what was kept.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arena::{
    Context, Deadline, Outcome, Process, Signal, Spawned, World, ensure, millis, seconds,
    send_signal,
};
use serde_json::Value;

use crate::desk::{CommandOutput, ask, dir, record, zoo};
use crate::kit::Place;

/// Nothing that is waited for here takes this long, even on a busy machine.
pub const LONG: Duration = seconds(30);

/// Bytes of all kinds in no order, the same each time.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The numbered lines that `zoo count` writes.
pub fn lines(count: u64) -> Vec<u8> {
    let mut all = Vec::new();
    for number in 1..=count {
        all.extend(format!("line {number}\n").bytes());
    }
    all
}

/// How many of them it has written for sure.
pub fn counted(world: &World) -> Outcome<u64> {
    let bytes = fs::read(world.dir().join("count")).context("count")?;
    let bytes = bytes.try_into().map_err(|_| "half a count")?;
    Ok(u64::from_le_bytes(bytes))
}

/// All that a dead `zoo count` wrote, and perhaps the line it was killed behind.
pub fn same_as_counted(world: &World, log: &[u8]) -> Outcome {
    let count = counted(world)?;
    let (sure, more) = (lines(count), lines(count + 1));
    if log == more {
        return Ok(());
    }
    same(log, &sure).context(format!("{count} lines were written"))
}

/// Says where two of them part.
pub fn same(is: &[u8], should: &[u8]) -> Outcome {
    if is == should {
        return Ok(());
    }
    let at = is.iter().zip(should).take_while(|(one, other)| one == other).count();
    let near = |bytes: &[u8]| {
        let part = &bytes[at.saturating_sub(20).min(bytes.len())..(at + 40).min(bytes.len())];
        String::from_utf8_lossy(part).into_owned()
    };
    let how = format!(
        "{} bytes instead of {}; they part at {at}: {:?} instead of {:?}",
        is.len(),
        should.len(),
        near(is),
        near(should)
    );
    Err(how.into())
}

pub fn log(world: &World, id: &str, name: &str) -> Outcome<Vec<u8>> {
    fs::read(dir(world, id).join(name)).context(name)
}

/// Waits for the end of a run; returns what was said and the report that is on disk.
pub fn over(world: &mut World, place: Place, id: &str) -> Outcome<(CommandOutput, Value)> {
    let said = ask(world, place, &["wait", id])?.hear(world, LONG)?;
    let report = record(world, id)?["report"].clone();
    ensure!(!report.is_null(), "run {id} has no report after wait");
    Ok((said, report))
}

/// The report's word about one stream.
pub fn stream(report: &Value, name: &str) -> Outcome<Value> {
    let all = report["output"].as_array().context(format!("no output in {report}"))?;
    let one = all.iter().find(|one| one["stream"] == name).cloned();
    one.context(format!("no stream {name} in {report}"))
}

/// All of it came, and nobody outside held it.
pub fn expect_drained(report: &Value) -> Outcome {
    ensure!(report["drained"] == true, "it was not drained: {report}");
    ensure!(report["holders"] == serde_json::json!([]), "somebody held it: {report}");
    Ok(())
}

/// Reads to the end in a thread of its own, so that nobody has to wait for us.
pub struct Collect {
    shared: Arc<(Mutex<Seen>, Condvar)>,
}

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    over: bool,
}

impl Collect {
    pub fn start(mut from: impl Read + Send + 'static) -> Self {
        let shared = Arc::<(Mutex<Seen>, Condvar)>::default();
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut chunk = vec![0; 65_536];
            loop {
                // A terminal says its end with an error.
                let length = match from.read(&mut chunk) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    other => other.unwrap_or(0),
                };
                let mut seen = lock(&ours);
                seen.bytes.extend_from_slice(&chunk[..length]);
                seen.over = length == 0;
                ours.1.notify_all();
                if length == 0 {
                    return;
                }
            }
        });
        Self { shared }
    }

    /// Waits for the end; returns all that came.
    pub fn end(&self) -> Outcome<Vec<u8>> {
        self.wait("no end of output", |seen| seen.over)
    }

    /// Waits until this has come.
    pub fn expect(&self, text: &str) -> Outcome<Vec<u8>> {
        let has =
            |seen: &Seen| seen.bytes.windows(text.len()).any(|window| window == text.as_bytes());
        self.wait(&format!("no {text:?}"), has)
    }

    pub fn so_far(&self) -> Vec<u8> {
        lock(&self.shared).bytes.clone()
    }

    fn wait(&self, what: &str, is: impl Fn(&Seen) -> bool) -> Outcome<Vec<u8>> {
        let deadline = Deadline::after(LONG);
        let mut seen = lock(&self.shared);
        while !is(&seen) {
            let text = String::from_utf8_lossy(&seen.bytes[seen.bytes.len().saturating_sub(200)..])
                .into_owned();
            ensure!(deadline.stands(), "{what} within {LONG:?}; there was … {text:?}");
            let waited = self.shared.1.wait_timeout(seen, deadline.left());
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(seen.bytes.clone())
    }
}

fn lock(shared: &(Mutex<Seen>, Condvar)) -> MutexGuard<'_, Seen> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command whose stdout is collected.
pub fn collected(world: &mut World, place: Place, words: &[&str]) -> Outcome<(Spawned, Collect)> {
    let mut command = world.command(world.fullstop());
    command.args(words).stdout(Stdio::piped());
    place.user.apply(&mut command);
    let label = format!("fullstop {}", words.join(" "));
    let (spawned, mut child) = world.spawn_piped(&label, &mut command)?;
    let collect = Collect::start(child.stdout.take().context("a pipe")?);
    Ok((spawned, collect))
}

/// Starts a member of the zoo outside of any run.
pub fn outsider(world: &mut World, place: Place, words: &[&str]) -> Outcome<Process> {
    let all = zoo(world, words[0]);
    let mut command = world.command(&all[0]);
    command.args(&all[1..]).args(&words[1..]);
    place.user.apply(&mut command);
    let spawned = world.spawn(&format!("zoo {}", words.join(" ")), &mut command)?;
    world.outsider(spawned.pid);
    Process::read(spawned.pid).context("it did not live")
}

/// Takes it out of the world again.
pub fn dismiss(process: &Process) -> Outcome {
    send_signal(process.pid, Signal::KILL)?;
    let gone = || process.still_there().is_none();
    ensure!(arena::await_until(LONG, gone), "{process} does not go");
    Ok(())
}

/// The memory of a process's own, in KiB.
pub fn memory(pid: i32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.context(format!("no memory in {status}"))
}

/// Waits until a process waits in a write to a pipe or a socket, and cannot go on.
pub fn await_blocked(pid: i32) -> Outcome {
    let sleeps = || Process::read(pid).is_some_and(|process| process.state == 'S');
    let blocked = || {
        let wchan = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        match wchan.as_str() {
            // Not told here: whoever only sleeps for a while cannot go on either.
            "" | "0" => {
                (0..20).all(|_| arena::await_until(millis(2), || false).is_so() || sleeps())
            }
            wchan => sleeps() && wchan.contains("pipe_write"),
        }
    };
    ensure!(arena::await_until(LONG, blocked), "{pid} does not wait for a reader");
    Ok(())
}

/// Attaches strace to a process that waits, and returns once it is attached. It ends with
/// the process.
pub fn trace(world: &mut World, pid: i32, words: &[&str]) -> Outcome<Spawned> {
    let mut strace = world.command("strace");
    strace.arg("-qq").args(words).args(["-p", &pid.to_string()]);
    let tracer = world.spawn("strace", &mut strace)?;
    world.outsider(tracer.pid);
    let line = format!("TracerPid:\t{}\n", tracer.pid);
    let status = format!("/proc/{pid}/status");
    let traced = || fs::read_to_string(&status).is_ok_and(|text| text.contains(&line));
    ensure!(arena::await_until(LONG, traced), "{pid} is not traced");
    Ok(tracer)
}

/// How many calls `strace -c` has counted in all.
pub fn calls(path: &std::path::Path) -> Outcome<u64> {
    let text = fs::read_to_string(path).context("counts")?;
    let total = text.lines().find(|line| line.ends_with(" total"));
    // Share, seconds, time for each; then the calls, and perhaps the errors.
    let number = total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    number.context(format!("no total in {text}"))
}

/// What happened in a run, by name.
pub fn events(world: &World, id: &str, name: &str) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(dir(world, id).join("events.jsonl")).context("events")?;
    let all: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let all = all.context(format!("events of {id}: {text:?}"))?;
    Ok(all.into_iter().filter(|event| event["type"] == name).collect())
}
