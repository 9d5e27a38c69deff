//! Commands that cannot be executed: one clear line, the status shells give,
//! and nothing left behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use arena::{Context, Ended, Outcome, Registry, World, ensure};

use super::kit::{ANYWHERE, EVERYWHERE, Launch, Place, add, all_clean, text};

pub fn register(registry: &mut Registry) {
    add(registry, "exec::not-found", &EVERYWHERE, &[], |world, place| {
        fails(world, place, &[], &["no-such-command-here"], 127, &["no-such-command-here"])
    });
    add(registry, "exec::no-such-path", &EVERYWHERE, &[], |world, place| {
        fails(world, place, &[], &["./missing"], 127, &["./missing"])
    });
    add(registry, "exec::empty-name", &ANYWHERE, &[], |world, place| {
        fails(world, place, &[], &[""], 127, &[])
    });
    add(registry, "exec::not-executable", &EVERYWHERE, &[], |world, place| {
        file(&world.dir().join("text"), "just text\n", 0o644)?;
        fails(world, place, &[], &["./text"], 126, &["./text", "permission denied"])
    });
    add(registry, "exec::not-executable-in-path", &ANYWHERE, &[], |world, place| {
        file(&world.dir().join("quiet"), "just text\n", 0o644)?;
        let path = format!("PATH={}:/nonexistent", text(world.dir()));
        fails(world, place, &["--env", &path], &["quiet"], 126, &["quiet", "permission denied"])
    });
    add(registry, "exec::a-directory", &ANYWHERE, &[], |world, place| {
        fails(world, place, &[], &["/"], 126, &["/"])
    });
    add(registry, "exec::missing-interpreter", &EVERYWHERE, &[], |world, place| {
        file(&world.dir().join("script"), "#!/no/such/interpreter\n", 0o755)?;
        let named = ["./script", "/no/such/interpreter"];
        fails(world, place, &[], &["./script"], 126, &named)
    });
    add(registry, "exec::interpreter-not-executable", &ANYWHERE, &[], |world, place| {
        file(&world.dir().join("interpreter"), "just text\n", 0o644)?;
        let interpreter = text(world.dir().join("interpreter"));
        file(&world.dir().join("script"), &format!("#!{interpreter}\n"), 0o755)?;
        fails(world, place, &[], &["./script"], 126, &["./script", &interpreter])
    });
    add(registry, "exec::bad-cwd", &EVERYWHERE, &[], |world, place| {
        fails(world, place, &["--cwd", "/no/such/dir"], &["true"], 125, &["/no/such/dir"])
    });
    add(registry, "exec::cwd-is-a-file", &ANYWHERE, &[], |world, place| {
        fails(world, place, &["--cwd", "/etc/passwd"], &["true"], 125, &["/etc/passwd"])
    });
    add(registry, "exec::text-without-interpreter-line", &EVERYWHERE, &[], by_the_shell);
    add(registry, "exec::relative-to-the-new-cwd", &EVERYWHERE, &[], relative_to_cwd);
    add(registry, "exec::unreadable-directories-in-path", &EVERYWHERE, &[], closed_directory);
    add(registry, "exec::busy", &EVERYWHERE, &[], busy);
}

fn file(path: &Path, content: &str, mode: u32) -> Outcome {
    fs::write(path, content).context(path.display())?;
    fs::set_permissions(path, Permissions::from_mode(mode)).context(path.display())
}

fn fails(
    world: &mut World,
    place: Place,
    options: &[&str],
    command: &[&str],
    status: i32,
    named: &[&str],
) -> Outcome {
    let (ended, run) = Launch::new(place).options(options).finish(world, command)?;
    ensure!(ended == Ended::Code(status), "run ended with {ended}, not with status {status}");
    let said = run.stderr();
    ensure!(said.lines().count() == 1, "not one line was said: {said:?}");
    ensure!(said.starts_with("fullstop: "), "who says this? {said:?}");
    for word in named {
        ensure!(said.to_lowercase().contains(word), "{word} is not named: {said:?}");
    }
    let report = run.expect_ended(place, "spawn-failed")?;
    ensure!(report.exit.is_none(), "a command that never was ended with {:?}", report.exit);
    ensure!(report.leftovers.is_empty(), "a command that never was left something");
    all_clean(world)
}

/// Shells and `execvp` hand such a file to `sh`.
fn by_the_shell(world: &mut World, place: Place) -> Outcome {
    file(&world.dir().join("script"), "echo \"$0 $1\" > said; exit 9\n", 0o755)?;
    let (ended, run) = Launch::new(place).finish(world, &["./script", "word"])?;
    ensure!(ended == Ended::Code(9), "run ended with {ended}");
    let said = fs::read_to_string(world.dir().join("said")).context("said")?;
    ensure!(said == "./script word\n", "the script was called as {said:?}");
    run.expect_ended(place, "exited")?;
    all_clean(world)
}

fn relative_to_cwd(world: &mut World, place: Place) -> Outcome {
    let below = world.dir().join("below");
    fs::create_dir(&below).context("mkdir")?;
    file(&below.join("here"), "#!/bin/sh\nexit 11\n", 0o755)?;
    let (ended, _) = Launch::new(place).options(&["--cwd", "below"]).finish(world, &["./here"])?;
    ensure!(ended == Ended::Code(11), "run ended with {ended}");
    all_clean(world)
}

/// A directory of PATH that may not be entered is passed over.
fn closed_directory(world: &mut World, place: Place) -> Outcome {
    let closed = world.dir().join("closed");
    fs::create_dir(&closed).context("mkdir")?;
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).context("chmod")?;
    let path = format!("PATH={}:/usr/bin:/bin", text(&closed));
    let launch = Launch::new(place).options(&["--env", &path]);
    let (ended, _) = launch.finish(world, &["sh", "-c", "exit 12"])?;
    ensure!(ended == Ended::Code(12), "run ended with {ended}");
    let (ended, run) = Launch::new(place)
        .options(&["--env", &format!("PATH={}", text(&closed))])
        .finish(world, &["no-such-command-here"])?;
    ensure!(ended == Ended::Code(127), "run ended with {ended}: {}", run.stderr());
    all_clean(world)
}

/// A program that is still being written: the kernel refuses it last of all.
fn busy(world: &mut World, place: Place) -> Outcome {
    let path = world.dir().join("busy");
    fs::copy(world.zoo(), &path).context("copying the zoo")?;
    let _writer = fs::OpenOptions::new().append(true).open(&path).context("busy")?;
    fails(world, place, &[], &["./busy"], 126, &["./busy", "busy"])
}
