//! `start`: returns when the command runs, says its id, and writes down what only its
//! owner may read.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use arena::{Context, Outcome, Process, Registry, World, ensure};

use super::desk::{
    all_clean, ask_with, dir, expect_over, nobody, proof, read_json, say, start, tell, who,
};
use crate::kit::{EVERYWHERE, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("returns-when-it-runs", returns as fn(&mut World, Place) -> Outcome),
        ("cannot-run", cannot_run),
        ("is-private", private),
        ("lives-on-without-its-host", lives_on),
        ("has-no-host", no_host),
        ("output-is-kept", output),
        ("writes-a-report", report),
    ] {
        add(registry, &format!("start::{name}"), &EVERYWHERE, &[], play);
    }
}

fn returns(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    // Whoever started it may ask for it at once, by what was printed.
    let id = start(world, place, &["--name", "one"], &["sh", "-c", "read gone < never"])?;
    let leader = leader(world)?;
    ensure!(leader.command.contains("never"), "the command does not run yet: {leader}");
    ensure!(leader.uid == place.user.uid(), "it runs as {}", leader.uid);
    ensure!(leader.sid == leader.pid, "it has no session of its own: {leader}");
    let who = who(world, &id)?;
    ensure!(who.leader.pid == leader.pid, "another leader is written down: {:?}", who.leader);
    for ours in [&who.guard, &who.keeper] {
        let open = fs::read_dir(format!("/proc/{}/fd", ours.pid)).context("descriptors")?;
        for fd in open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()) {
            let out = world.out();
            ensure!(!fd.starts_with(out), "{ours} holds {}", fd.display());
        }
    }
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The leader of the only run: the child of the keeper.
fn leader(world: &World) -> Outcome<Process> {
    let keeper = crate::kit::keeper(world)?;
    crate::kit::children(keeper.pid).into_iter().next().context("no leader")
}

fn cannot_run(world: &mut World, place: Place) -> Outcome {
    let cage = place.cage.to_string();
    let text = world.dir().join("text");
    fs::write(&text, "no program").context("file")?;
    let text = crate::kit::text(text);
    for (command, status, about) in [
        ("no-such-program", 127, "no-such-program"),
        ("/no/such/program", 127, "/no/such/program"),
        (text.as_str(), 126, "text"),
        ("/etc", 126, "/etc"),
    ] {
        let said = say(world, place, &["start", "--cage", &cage, "--", command])?;
        said.expect_one_line(status, about)?;
        ensure!(said.out.is_empty(), "an id of nobody was printed: {}", said.out);
        nobody(world)?;
    }
    for words in [&["start"][..], &["start", "--ladder", "bite", "--", "true"]] {
        let said = say(world, place, words)?;
        said.expect(125)?;
        ensure!(said.out.is_empty(), "it printed {:?}", said.out);
    }
    let said = say(world, place, &["start", "--cwd", "/no/such/dir", "--", "true"])?;
    ensure!(said.ended != arena::Ended::Code(0), "it ran without its directory");
    ensure!(said.err.contains("/no/such/dir"), "the directory is not named: {:?}", said.err);
    all_clean(world)
}

/// Nobody but the owner reads what was asked for: it holds secrets.
fn private(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let options = ["--group", "plan/research", "--name", "one"];
    let asked = ask_with(
        world,
        place,
        &[&["start"], &options[..], &["--", "sh", "-c", "read gone < never"]].concat(),
        // A mask that takes nothing away must not open anything up.
        |command| {
            command.env("FULLSTOP_TEST_TOKEN", "very-secret");
        },
    )?;
    let said = asked.hear(world, arena::seconds(10))?;
    said.expect(0)?;
    let id = said.out.trim_end();
    who(world, id)?;
    all_private(&world.state(), place)?;
    let spec = read_json(&dir(world, id).join("spec.json"))?;
    ensure!(spec.to_string().contains("very-secret"), "a restart could not do the same again");
    for name in ["record.json", "events.jsonl"] {
        let text = fs::read_to_string(dir(world, id).join(name)).context(name)?;
        ensure!(!text.contains("very-secret"), "{name} tells the secret");
    }
    tell(world, place, &["stop", id])?;
    all_private(&world.state(), place)?;
    all_clean(world)
}

fn all_private(path: &std::path::Path, place: Place) -> Outcome {
    let meta = fs::symlink_metadata(path).context("metadata")?;
    let mode = meta.permissions().mode() & 0o777;
    let right = match () {
        () if meta.is_dir() => mode == 0o700,
        // Which mode a socket gets is up to the umask; its directory is shut.
        () if meta.file_type().is_socket() => true,
        () => mode == 0o600,
    };
    ensure!(right, "{} has mode {mode:o}", path.display());
    ensure!(meta.uid() == place.user.uid(), "{} belongs to {}", path.display(), meta.uid());
    if meta.is_dir() {
        for entry in fs::read_dir(path).context("directory")?.flatten() {
            all_private(&entry.path(), place)?;
        }
    }
    Ok(())
}

/// By default a run in the background is nobody's.
fn lives_on(world: &mut World, place: Place) -> Outcome {
    let mut lines = Lines::create(world, "lines")?;
    let _go = Lines::create(world, "go")?;
    let id = start(
        world,
        place,
        &[],
        &["sh", "-c", "echo up > lines; read go < go; echo down > lines"],
    )?;
    lines.expect("up")?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    lines.expect("down")?;
    let said = say(world, place, &["wait", &id])?;
    said.expect(0)?;
    expect_over(world, &id, "exited", proof(place))?;
    all_clean(world)
}

/// Whoever asked for it is gone once it has said the id: there is no host to outlive.
fn no_host(world: &mut World, place: Place) -> Outcome {
    let words = ["start", "--on-host-exit", "stop", "--", "sh", "-c", ": > born"];
    say(world, place, &words)?.expect_one_line(125, "on-host-exit")?;
    nobody(world)?;
    ensure!(!world.dir().join("born").exists(), "it was born");
    all_clean(world)
}

/// What it says stays in its directory, the last byte included.
fn output(world: &mut World, place: Place) -> Outcome {
    let id = start(
        world,
        place,
        &[],
        &["sh", "-c", "cat; echo to out; echo to err >&2; printf last; kill -9 $$"],
    )?;
    let said = say(world, place, &["wait", &id])?;
    said.expect(137)?;
    let read = |name| fs::read_to_string(dir(world, &id).join(name)).context(name);
    let (out, err) = (read("out.log")?, read("err.log")?);
    ensure!(out == "to out\nlast", "stdout was {out:?}");
    ensure!(err == "to err\n", "stderr was {err:?}");
    expect_over(world, &id, "exited", proof(place))?;
    all_clean(world)
}

fn report(world: &mut World, place: Place) -> Outcome {
    // Named as seen by the caller, not by the keeper.
    let id = start(world, place, &["--report", "report.json"], &["sh", "-c", "exit 3"])?;
    say(world, place, &["wait", &id])?.expect(3)?;
    let report = arena::report::Report::read(&world.dir().join("report.json"))?;
    ensure!(report.id == id && report.reason == "exited", "the report is {report:?}");
    ensure!(report.leader() == Some(arena::Ended::Code(3)), "the report is {report:?}");
    say(world, place, &["start", "--report", "-", "--", "true"])?
        .expect_one_line(125, "--report")?;
    all_clean(world)
}
