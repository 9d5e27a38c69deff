//! What stands elsewhere than it should, or in the place of something else: a lost entry in the
//! index of names, a pipe or a directory for a file, a state directory by another path.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use arena::{
    Context as _, Need, Outcome, Registry, Signal, World, await_until, ensure, seconds, send_signal,
};

use super::desk::{
    CommandOutput, QUIET, alive, all_clean, ask_program, ask_with, dir, expect_over, freeze,
    live_ids, proof, say, start, tell, thaw, who,
};
use super::vanished::{awake, restored};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("entry-of-a-name", entry_of_a_name as fn(&mut World, Place) -> Outcome),
        ("directory-of-a-named-run", directory_of_a_named_run),
        ("directory-for-a-listing", directory_for_a_listing),
        ("directory-for-a-socket", directory_for_a_socket),
        ("ended-with-a-directory-for-a-listing", ended_with_a_directory),
    ] {
        add(registry, &format!("misplaced::{name}"), &ANYWHERE, &[], play);
    }
    let mkfifo = [Need::Program("mkfifo")];
    add(registry, "misplaced::pipes", &ANYWHERE, &mkfifo, pipes);
    add(registry, "misplaced::another-path", &AS_ROOT[..1], &[], another_path);
}

/// The entries of a name in the index.
fn entries(world: &World, name: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(world.state().join("names").join(name));
    listed.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn entry_of(world: &World, name: &str, id: &str) -> Option<PathBuf> {
    let is_of = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(id)
    };
    entries(world, name).into_iter().find(is_of)
}

/// A run that is over, and a live one of the same name.
fn two_of_a_name(world: &mut World, place: Place) -> Outcome<String> {
    let cage = place.cage.to_string();
    tell(world, place, &["run", "--cage", &cage, "--name", "bob", "--", "true"])?;
    let id = start(world, place, &["--name", "bob"], &["sh", "-c", QUIET])?;
    ensure!(entries(world, "bob").len() == 2, "the index has {:?}", entries(world, "bob"));
    Ok(id)
}

/// The name means the live run though its entry is gone, and its keeper makes the entry anew.
fn entry_of_a_name(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = two_of_a_name(world, place)?;
    let who = who(world, &id)?;
    freeze(&who)?;
    let entry = entry_of(world, "bob", &id).context("its entry")?;
    fs::remove_file(&entry).context("remove its entry")?;
    let shown = say(world, place, &["show", "--json", "bob"])?;
    shown.expect(0)?;
    ensure!(shown.json()?["record"]["id"] == id.as_str(), "bob is {}", shown.out);
    thaw(&who);
    awake(&who.keeper, "did not restore its entry", || entry.exists())?;
    fs::remove_file(&entry).context("remove its entry again")?;
    say(world, place, &["stop", "bob"])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// A sweep leaves the entry of a live run whose directory was removed.
fn directory_of_a_named_run(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = two_of_a_name(world, place)?;
    let who = who(world, &id)?;
    freeze(&who)?;
    fs::remove_dir_all(dir(world, &id)).context("remove its directory")?;
    say(world, place, &["sweep"])?;
    ensure!(entry_of(world, "bob", &id).is_some(), "a sweep has removed its entry");
    thaw(&who);
    restored(world, &id, &who)?;
    say(world, place, &["stop", "bob"])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

fn make_pipe(world: &mut World, place: Place, path: &Path) -> Outcome {
    let _ = fs::remove_file(path);
    let made = ask_program(world, place, "mkfifo", &["mkfifo"], |command| {
        command.arg(path);
    })?;
    made.hear(world, seconds(20))?.expect(0)
}

fn is_pipe(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_fifo())
}

/// Nothing waits for a pipe, wherever it stands. It is named, it hides no run, and the keeper of
/// a live run puts its own in the place.
fn pipes(world: &mut World, place: Place) -> Outcome {
    const NO_RUN: &str = "0tfsgdc50f59n";
    let cage = place.cage.to_string();
    let _never = Lines::create(world, "never")?;
    let stranger = world.state().join("live").join(NO_RUN);
    for name in
        ["", "listing", "record.json", "spec.json", "record.json.new", "events.jsonl", "lock"]
    {
        let id = start(world, place, &["--name", "bob"], &["sh", "-c", QUIET])?;
        let who = who(world, &id)?;
        let path = match name {
            "" => stranger.clone(),
            "listing" => world.state().join("live").join(&id),
            name => dir(world, &id).join(name),
        };
        freeze(&who)?;
        make_pipe(world, place, &path)?;
        let ps = tell(world, place, &["ps"])?;
        ensure!(ps.contains(&id), "{name}: ps does not show it: {ps}");
        say(world, place, &["sweep"])?;
        say(world, place, &["doctor"])?;
        tell(world, place, &["run", "--cage", &cage, "--", "true"])?;
        ensure!(alive(&who.leader) && alive(&who.keeper), "{name}: it was hurt");
        thaw(&who);
        if name.is_empty() {
            ensure!(ps.contains("is a pipe, not a file of ours"), "ps says {ps}");
            let said = say(world, place, &["stop", "--all"])?;
            said.expect(125)?;
            ensure!(said.err.contains("is a pipe"), "stop --all says {:?}", said.err);
        } else {
            if ["listing", "record.json", "spec.json", "lock"].contains(&name) {
                awake(&who.keeper, "left the pipe", || !is_pipe(&path))?;
            }
            say(world, place, &["stop", "--all"])?.expect(0)?;
        }
        ensure!(!is_pipe(&path) || name.is_empty(), "{name}: it is a pipe still");
        expect_over(world, &id, "stopped", proof(place)).context(name.to_owned())?;
        let _ = fs::remove_file(&stranger);
    }
    all_clean(world)
}

/// Puts a directory in the place of a file, with something in it.
fn make_directory(path: &Path) -> Outcome {
    fs::remove_file(path).context("remove what was there")?;
    fs::create_dir(path).context("a directory")?;
    fs::write(path.join("kept"), "").context("a file in it")
}

/// What was put there is somebody's: it is moved aside, and not removed.
fn take_aside(path: &Path) -> Outcome {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".strange");
    let aside = PathBuf::from(aside);
    ensure!(aside.join("kept").exists(), "{} is not there", aside.display());
    fs::remove_dir_all(aside).context("remove it")
}

fn directory_for_a_listing(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let path = world.state().join("live").join(&id);
    make_directory(&path)?;
    ensure!(tell(world, place, &["ps", "-q"])?.trim_end() == id, "it is not listed");
    awake(&who.keeper, "did not list it again", || path.is_file())?;
    take_aside(&path)?;
    say(world, place, &["stop", &id])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

fn directory_for_a_socket(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let path = dir(world, &id).join("control.sock");
    make_directory(&path)?;
    let listens = || path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    awake(&who.keeper, "does not listen", listens)?;
    take_aside(&path)?;
    say(world, place, &["stop", &id])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The end comes before the keeper has looked at its names.
fn ended_with_a_directory(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--ladder", "kill"], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let listing = world.state().join("live").join(&id);
    let socket = dir(world, &id).join("control.sock");
    freeze(&who)?;
    make_directory(&listing)?;
    make_directory(&socket)?;
    send_signal(who.keeper.pid, Signal::TERM)?;
    thaw(&who);
    ensure!(await_until(SOON, || !alive(&who.guard)), "the guard does not leave");
    ensure!(!live_ids(world).contains(&id), "it is unfinished");
    take_aside(&listing)?;
    take_aside(&socket)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The tag of a run is the same by whichever path its state directory is named.
fn another_path(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (real, link) = (world.state(), world.dir().join("link"));
    tell(world, place, &["ps"])?;
    symlink(&real, &link).context("a link")?;
    let through = |world: &mut World, path: &Path, words: &[&str]| -> Outcome<CommandOutput> {
        let asked = ask_with(world, place, words, |command| {
            command.env("FULLSTOP_DIR", path);
        })?;
        asked.hear(world, seconds(20))
    };
    let cage = place.cage.to_string();
    for (one, other) in [(&link, &real), (&real, &link)] {
        let words = ["start", "--cage", &cage, "--", "sh", "-c", QUIET];
        let started = through(world, one, &words)?;
        started.expect(0)?;
        let id = started.out.trim_end().to_owned();
        let who = who(world, &id)?;
        freeze(&who)?;
        fs::remove_file(real.join("live").join(&id)).context("remove the listing")?;
        for words in [&["stop", "--all"][..], &["sweep"]] {
            let said = through(world, other, words)?;
            said.expect(120)?;
            let told = format!("{}{}", said.out, said.err);
            ensure!(told.contains(&id), "{words:?} through {}: {told}", other.display());
        }
        thaw(&who);
        restored(world, &id, &who)?;
        through(world, other, &["stop", "--all"])?.expect(0)?;
        expect_over(world, &id, "stopped", proof(place))?;
    }
    all_clean(world)
}
