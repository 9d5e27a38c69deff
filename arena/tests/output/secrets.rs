//! `--secret-fd`: a secret reaches the command, and nothing else that anybody can look at.

use std::fs;
use std::path::Path;

use arena::{Context, Need, Outcome, Process, Registry, World, await_until, ensure};

use super::tools::{LONG, log, over, same};
use crate::desk::{all_clean, ask, dir, live_ids, nobody, run_ids, say, start, tell, who};
use crate::kit::{ANYWHERE, EVERYWHERE, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "secrets::arrive", &EVERYWHERE, &[], arrive);
    add(registry, "secrets::not-in-memory", &ANYWHERE, &[Need::Check(readable)], not_in_memory);
    add(registry, "secrets::missing", &ANYWHERE, &[], missing);
    add(registry, "secrets::in-front", &ANYWHERE, &[], in_front);
}

const SECRET: &str = "a very well kept secret: 4711";

/// The command line and the environment of everybody, and the records.
fn nowhere(world: &World, id: &str) -> Outcome {
    for process in Process::all().into_iter().filter(|process| process.pid != 1) {
        for name in ["cmdline", "environ"] {
            let path = format!("/proc/{}/{name}", process.pid);
            unknown(Path::new(&path)).context(process.to_string())?;
        }
    }
    for name in crate::desk::names(&dir(world, id)) {
        let path = dir(world, id).join(&name);
        if path.is_file() {
            unknown(&path)?;
        }
    }
    Ok(())
}

fn unknown(path: &Path) -> Outcome {
    let bytes = fs::read(path).unwrap_or_default();
    let tells = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    ensure!(!tells, "{} tells the secret", path.display());
    Ok(())
}

fn arrive(world: &mut World, place: Place) -> Outcome {
    let (mut told, _go) = (Lines::create(world, "told")?, Lines::create(world, "go")?);
    let (file, other) = (world.dir().join("token"), world.dir().join("other"));
    fs::write(&file, SECRET).context("token")?;
    fs::write(&other, b"\0\xff\n").context("other")?;
    for path in [&file, &other] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).context("chmod")?;
    }
    let script = "cat <&$TOKEN > got; cat <&$OTHER > too; echo got > told; read go < go";
    let script = script.replace("<&$TOKEN", "/dev/fd/$TOKEN").replace("<&$OTHER", "/dev/fd/$OTHER");
    let options = ["--secret-fd", "TOKEN=token", "--secret-fd", "OTHER=other"];
    let id = start(world, place, &options, &["sh", "-c", &script])?;
    for round in 0..2 {
        told.expect("got")?;
        same(&fs::read(world.dir().join("got")).context("got")?, SECRET.as_bytes())?;
        same(&fs::read(world.dir().join("too")).context("too")?, b"\0\xff\n")?;
        nowhere(world, &id)?;
        fs::write(world.dir().join("go"), "now\n").context("go")?;
        over(world, place, &id)?.0.expect(0)?;
        nowhere(world, &id)?;
        if round == 0 {
            fs::remove_file(world.dir().join("got")).context("got")?;
            tell(world, place, &["restart", &id])?;
        }
    }
    // Without it there is no restart, and the run stays as it is.
    fs::remove_file(&file).context("token")?;
    say(world, place, &["restart", &id])?.expect_one_line(125, "TOKEN")?;
    nobody(world)?;
    all_clean(world)
}

/// Once the command has it, nobody else has.
fn not_in_memory(world: &mut World, place: Place) -> Outcome {
    let (mut told, _go) = (Lines::create(world, "told")?, Lines::create(world, "go")?);
    // As most files it ends with a line.
    fs::write(world.dir().join("token"), format!("{SECRET}\n")).context("token")?;
    let ours = i32::try_from(std::process::id()).context("pid")?;
    let known = std::hint::black_box(SECRET.to_owned());
    ensure!(tells(ours)?.is_some(), "the memory of a process cannot be searched");
    drop(known);
    for words in [&["start"][..], &["run", "--log"]] {
        let script = "echo got > told; read go < go";
        let options = ["--secret-fd", "TOKEN=token", "--", "sh", "-c", script];
        let asked = ask(world, place, &[words, &options].concat())?;
        told.expect("got")?;
        let id = live_ids(world).pop().context("no run")?;
        let who = who(world, &id)?;
        for process in [&who.keeper, &who.guard] {
            // The last of it is wiped a moment after the command is there.
            let mut found = None;
            let wiped = await_until(LONG, || {
                found = tells(process.pid).unwrap_or_else(|failure| Some(failure.text));
                found.is_none()
            });
            ensure!(wiped, "{words:?}: {process} keeps the secret: {found:?}");
        }
        fs::write(world.dir().join("go"), "now\n").context("go")?;
        over(world, place, &id)?.0.expect(0)?;
        asked.hear(world, LONG)?.expect(0)?;
    }
    all_clean(world)
}

/// Whether we may look into the memory of others.
fn readable() -> Result<(), String> {
    let parent = std::os::unix::process::parent_id();
    let opened = fs::File::open(format!("/proc/{parent}/mem"));
    opened.map(drop).map_err(|error| format!("no look into the memory of others: {error}"))
}

/// Where in the memory of a process the secret is.
fn tells(pid: i32) -> Outcome<Option<String>> {
    use std::os::unix::fs::FileExt as _;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).context("maps")?;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).context("memory")?;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split_once(' ').context(line)?.0.split_once('-').context(line)?;
        let from = u64::from_str_radix(from, 16).context(line)?;
        let to = u64::from_str_radix(to, 16).context(line)?;
        let mut bytes = vec![0; usize::try_from(to - from).context(line)?];
        // What cannot be read is none of its memory.
        if memory.read_exact_at(&mut bytes, from).is_ok()
            && bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
        {
            return Ok(Some(line.to_owned()));
        }
    }
    Ok(None)
}

fn missing(world: &mut World, place: Place) -> Outcome {
    for verb in ["start", "run"] {
        let words = [verb, "--secret-fd", "TOKEN=no-such-file", "--", "touch", "born"];
        say(world, place, &words)?.expect_one_line(125, "no-such-file")?;
        nobody(world)?;
    }
    for wrong in ["TOKEN", "=x", "9X=token", "A B=token", "FULLSTOP_ID=token"] {
        let said = say(world, place, &["start", "--secret-fd", wrong, "--", "touch", "born"])?;
        said.expect_one_line(125, "secret")?;
    }
    ensure!(!world.dir().join("born").exists(), "it was born");
    ensure!(run_ids(world).is_empty(), "a run is left: {:?}", run_ids(world));
    all_clean(world)
}

/// `run` hands it over as well, and a pipe is as good as a file.
fn in_front(world: &mut World, place: Place) -> Outcome {
    let path = world.dir().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .context("mknod")?;
    let words = ["run", "--log", "--secret-fd", "TOKEN=pipe", "--", "sh", "-c"];
    let words = [&words[..], &["cat /dev/fd/$TOKEN; exit 3"]].concat();
    let asked = crate::desk::ask(world, place, &words)?;
    fs::write(&path, SECRET).context("pipe")?;
    let said = asked.hear(world, LONG)?;
    said.expect(3)?;
    same(said.out.as_bytes(), SECRET.as_bytes())?;
    let id = run_ids(world).pop().context("no run")?;
    same(&log(world, &id, "out.log")?, SECRET.as_bytes())?;
    all_clean(world)
}
