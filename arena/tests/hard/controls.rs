//! FUSE and vfork. A read that waits for a page and a vfork parent show state D
//! and can be killed: the negative controls. A read whose request is out at the
//! server cannot be killed before the server is.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use arena::{
    Context, Ended, Need, Outcome, Process, Ready, Registry, Signal, Spawned, World, ensure,
    seconds, send_signal,
};

use super::kit::{AS_ROOT, EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean, text};
use super::stuck::{BOUND, LADDER, Trigger, hangs, is_confirmed, is_stuck, zoo};

pub fn register(registry: &mut Registry) {
    let fuse = [Need::Check(fuse_device)];
    add(registry, "stuck::fuse-request-is-out", &AS_ROOT, &fuse, fuse_direct);
    add(registry, "control::fuse-read", &AS_ROOT, &fuse, fuse_read);
    add(registry, "control::vfork-parent", &EVERYWHERE, &[], vfork_parent);
}

fn fuse_device() -> Result<(), String> {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    device.map(drop).map_err(|error| format!("/dev/fuse: {error}"))
}

/// A file system that answers everything but reads, and a member that reads.
fn fuse(world: &mut World, place: Place, file: &str) -> Outcome<(Spawned, Run, Process)> {
    let point = world.scratch().join("mounted");
    fs::create_dir(&point).context("mount point")?;
    let mut serving = Lines::create(world, "serving")?;
    let mut server = world.command(world.zoo());
    server.arg("--dir").arg(world.dir()).arg("fuse-serve").arg(&point);
    let server = world.spawn("fuse-serve", &mut server)?;
    serving.expect("serving")?;
    world.outsider(server.pid);
    let mut ready = Ready::create(&world.dir())?;
    let (zoo_path, path) = (text(world.zoo()), text(point.join(file)));
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &[&zoo_path, "--dir", ".", "fuse-reader", &path])?;
    let announced = ready.wait(seconds(10))?;
    ensure!(announced == 1, "the reader announced {announced}");
    serving.expect("asked")?;
    let reader = zoo(world)?;
    Ok((server, run, reader))
}

fn leave(world: &World, server: &Spawned) -> Outcome {
    send_signal(server.pid, Signal::KILL)?;
    world.wait(server, SOON).map(drop)
}

fn fuse_read(world: &mut World, place: Place) -> Outcome {
    let (server, run, reader) = fuse(world, place, "file")?;
    hangs(&reader)?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, BOUND)?;
    let report = run.expect_ended(place, "stopped")?;
    // A wait for a page ends with any signal that kills.
    ensure!(ended == Ended::Signal(15), "run ended with {ended}: {:?}", report.steps);
    world.expect_extinct(Duration::ZERO)?;
    leave(world, &server)?;
    all_clean(world)
}

fn fuse_direct(world: &mut World, place: Place) -> Outcome {
    let (server, run, reader) = fuse(world, place, "direct")?;
    let pulled = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    is_stuck(world, &run, &reader, pulled, Trigger::Term)?;
    leave(world, &server)?;
    is_confirmed(world, &run, place, Trigger::Term)?;
    all_clean(world)
}

fn vfork_parent(world: &mut World, place: Place) -> Outcome {
    let mut ready = Ready::create(&world.dir())?;
    let zoo_path = text(world.zoo());
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &[&zoo_path, "--dir", ".", "vfork-parent"])?;
    let announced = ready.wait(seconds(10))?;
    ensure!(announced == 3, "the member announced {announced}");
    let all = world.survivors();
    ensure!(all.iter().any(|process| process.state == 'D'), "nobody shows D");
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, BOUND)?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}
