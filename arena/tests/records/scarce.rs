//! Too little of something: threads, descriptors, system calls, room to say a word. Each
//! command does what was asked, or says in one line what it lacked; it never panics.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};

use arena::{Context, Ended, Need, Outcome, Registry, World, ensure, seconds};

use super::desk::{
    CommandOutput, alive, all_clean, ask_program, ask_with, live_ids, lose, nobody, run_ids, start,
    who,
};
use crate::kit::{ANYWHERE, AS_ROOT, EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("id-untold", id_untold as fn(&mut World, Place) -> Outcome),
        ("end-untold", end_untold),
        ("sweep-untold", sweep_untold),
        ("not-utf-8", not_utf8),
    ] {
        add(registry, &format!("scarce::{name}"), &EVERYWHERE, &[], play);
    }
    add(registry, "scarce::threads", &AS_ROOT, &[], threads);
    let strace = [Need::Program("strace")];
    add(registry, "scarce::sweep-blind", &AS_ROOT[..1], &strace, sweep_blind);
    add(registry, "scarce::descriptors", &ANYWHERE, &[], descriptors);
    add(registry, "scarce::calls", &ANYWHERE, &strace, calls);
}

/// A stdout that takes nothing: a full disk, or a reader who has gone.
fn takes_nothing(broken: bool) -> Outcome<std::process::Stdio> {
    if broken {
        let (reader, writer) = std::io::pipe().context("pipe")?;
        drop(reader);
        return Ok(writer.into());
    }
    Ok(File::options().write(true).open("/dev/full").context("/dev/full")?.into())
}

fn say_to_nobody(
    world: &mut World,
    place: Place,
    words: &[&str],
    broken: bool,
) -> Outcome<CommandOutput> {
    let out = takes_nothing(broken)?;
    ask_with(world, place, words, |command| {
        command.stdout(out);
    })?
    .hear(world, seconds(20))
}

/// A run whose id nobody was told does not stay.
fn id_untold(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    for broken in [false, true] {
        let words = ["start", "--cage", &cage, "--", "sh", "-c", "read gone < never"];
        let said = say_to_nobody(world, place, &words, broken)?;
        nobody(world)?;
        said.expect_one_line(125, "stdout")?;
        let ids = run_ids(world);
        ensure!(ids.iter().any(|id| said.err.contains(id)), "which run? {:?}", said.err);
        ensure!(live_ids(world).is_empty(), "still listed: {:?}", live_ids(world));
    }
    all_clean(world)
}

/// A stop is what it was, whether or not its end could be shown; and who cannot be told of
/// one run stops the others all the same.
fn end_untold(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for broken in [false, true] {
        for words in [&["stop", "--all"][..], &["kill", "--all"], &["stop", "--all", "--json"]] {
            let mut runs = Vec::new();
            for _ in 0..3 {
                let id = start(world, place, &[], &["sh", "-c", "read gone < never"])?;
                runs.push((who(world, &id)?.leader, id));
            }
            let said = say_to_nobody(world, place, words, broken)?;
            said.expect(0)?;
            for (leader, id) in runs {
                ensure!(!alive(&leader), "{id} lives");
                ensure!(said.err.contains(&id), "the end of {id} was not told: {:?}", said.err);
            }
        }
    }
    nobody(world)?;
    all_clean(world)
}

/// What a sweep has killed is told, on stderr if need be, and the status is that of the sweep.
fn sweep_untold(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for broken in [false, true] {
        for words in [&["sweep"][..], &["sweep", "--json"]] {
            let id = start(world, place, &[], &["sh", "-c", "read gone < never"])?;
            let leader = lose(world, &id)?.leader;
            let said = say_to_nobody(world, place, words, broken)?;
            said.expect(0)?;
            ensure!(!alive(&leader), "{id} lives");
            ensure!(said.err.contains(&id), "the end of {id} was not told: {:?}", said.err);
        }
    }
    nobody(world)?;
    all_clean(world)
}

/// What a sweep has killed is told, also if it cannot look for others afterwards.
fn sweep_blind(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", "read gone < never"])?;
    let leader = lose(world, &id)?.leader;
    let program = text(world.fullstop());
    let asked = ask_program(world, place, "strace", &["sweep"], |command| {
        command.args(["-qqq", "-o", "/dev/null", "-P", "/proc"]);
        command.args(["-e", "inject=openat:error=EMFILE"]).arg(&program).arg("sweep");
    })?;
    let said = asked.hear(world, seconds(20))?;
    said.expect_one_line(125, "/proc")?;
    ensure!(!alive(&leader), "{id} lives");
    ensure!(said.out.contains(&id), "the end of {id} was not told: {said:?}");
    nobody(world)?;
    all_clean(world)
}

/// The names of records and reports are bytes, and need not be text.
fn not_utf8(world: &mut World, place: Place) -> Outcome {
    let records = world.scratch().join(OsStr::from_bytes(b"records-\xff"));
    let report = world.dir().join(OsStr::from_bytes(b"report-\xff"));
    fs::create_dir(&records).context("directory")?;
    chown(&records, Some(place.user.uid()), None).context("directory")?;
    fs::set_permissions(&records, fs::Permissions::from_mode(0o700)).context("directory")?;
    let (program, cage) = (text(world.fullstop()), place.cage.to_string());
    let mut say = |words: &[&OsStr]| -> Outcome<CommandOutput> {
        let asked = ask_program(world, place, &program, &["…"], |command| {
            command.args(words).env("FULLSTOP_DIR", &records);
        })?;
        asked.hear(world, seconds(20))
    };
    let [start, stop, wait, restart] = ["start", "stop", "wait", "restart"].map(OsStr::new);
    let options = ["--cage", &cage, "--name", "it", "--report"].map(OsStr::new);
    let command = ["--", "sleep", "60"].map(OsStr::new);
    let words = [&[start], &options[..], &[report.as_os_str()], &command].concat();
    say(&words)?.expect(0)?;
    for words in [[restart, OsStr::new("it")], [stop, OsStr::new("it")]] {
        say(&words)?.expect(0)?;
    }
    say(&[wait, OsStr::new("it")])?.expect(143)?;
    ensure!(fs::metadata(&report).is_ok_and(|file| file.len() > 0), "there is no report");
    nobody(world)
}

/// Where no thread can be made, as in some sandboxes and under `ulimit -u`.
fn threads(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    fs::write(world.dir().join("secret"), "hidden").context("secret")?;
    let (zoo, fullstop) = (text(world.zoo()), text(world.fullstop()));
    let cage = place.cage.to_string();
    let without = |world: &mut World, words: &str| -> Outcome<String> {
        let script = format!("exec {fullstop} {words}");
        let asked = ask_program(world, place, &zoo, &[words], |command| {
            command.args(["threadless", &script]);
        })?;
        let said = asked.hear(world, seconds(30))?;
        said.expect(0).context(words)?;
        Ok(said.out.trim().to_owned())
    };
    let quiet = "-- sh -c 'while :; do read gone < never; done'";
    let start = |world: &mut World, options: &str| {
        without(world, &format!("start --cage {cage} {options} {quiet}"))
    };
    // A sweep takes a thread where there is one. The guard of a later run might sweep too.
    let lost = start(world, "")?;
    lose(world, &lost)?;
    without(world, &format!("stop {lost}"))?;
    for options in ["--pty", "--secret-fd KEY=secret", "--name it"] {
        start(world, options)?;
    }
    without(world, &format!("run --cage {cage} --pty -- true"))?;
    without(world, "restart it")?;
    without(world, "stop --all")?;
    nobody(world)?;
    all_clean(world)
}

/// What was lacking is named, and not only numbered.
fn expect_named(said: &CommandOutput, about: &str) -> Outcome {
    ensure!(!said.err.contains("os error"), "{about}: {:?}", said.err);
    ensure!(!said.err.contains("panicked"), "{about}: {:?}", said.err);
    // A `run` goes on without a record, and says so first.
    let lines = said.err.lines().filter(|line| !line.contains("this run has no record")).count();
    let wanted = usize::from(said.ended != Ended::Code(0));
    ensure!(lines == wanted, "{about}: {lines} lines and not {wanted}: {said:?}");
    Ok(())
}

fn descriptors(world: &mut World, place: Place) -> Outcome {
    let program = text(world.fullstop());
    let cage = place.cage.to_string();
    for limit in 3..24 {
        for words in [format!("run --cage {cage} -- true"), format!("start --cage {cage} -- true")]
        {
            let script = format!("ulimit -n {limit}; exec {program} {words}");
            let asked = ask_program(world, place, "sh", &[&words], |command| {
                command.args(["-c", &script]);
            })?;
            let said = asked.hear(world, seconds(20))?;
            expect_named(&said, &format!("ulimit -n {limit}; {words}"))?;
            world.expect_extinct(SOON)?;
        }
    }
    all_clean(world)
}

/// A kernel, or a filter, that does not know a call.
fn calls(world: &mut World, place: Place) -> Outcome {
    const CALLS: [&str; 6] =
        ["signalfd4", "eventfd2", "socketpair", "pidfd_open", "epoll_create1", "timerfd_create"];
    let program = text(world.fullstop());
    let cage = place.cage.to_string();
    for call in CALLS {
        for words in [&["run"][..], &["start"]] {
            let fault = format!("inject={call}:error=ENOSYS");
            let asked = ask_program(world, place, "strace", words, |command| {
                command.args(["-f", "-b", "execve", "-qqq", "-o", "/dev/null", "-e", &fault]);
                command.arg(&program).args(words).args(["--cage", &cage, "--", "true"]);
            })?;
            let said = asked.hear(world, seconds(20))?;
            expect_named(&said, &format!("{call} in {words:?}"))?;
            world.expect_extinct(SOON)?;
        }
    }
    Ok(())
}
