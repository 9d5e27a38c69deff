//! Few descriptors: a start works, or says in one line that it does not, and leaves
//! nothing.

use arena::{Context, Ended, Outcome, Registry, World, ensure};

use super::tools::{LONG, over};
use crate::desk::{all_clean, ask_program, dir, nobody, run_ids};
use crate::kit::{AS_ROOT, Lines, Place, add, no_cgroup, text};

pub fn register(registry: &mut Registry) {
    add(registry, "limits::few-descriptors", &AS_ROOT, &[], few);
}

fn few(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    std::fs::write(world.dir().join("token"), "secret").context("token")?;
    let (fullstop, cage) = (text(world.fullstop()), place.cage);
    let mut failed = 0;
    for limit in (6..=36).chain([64]) {
        let before = run_ids(world);
        let script = format!(
            "ulimit -n {limit}; exec {fullstop} start --cage {cage} --stdin pipe \
             --secret-fd TOKEN=token -- sh -c 'echo up; read n < never'"
        );
        let words = ["ulimit", "-n", &limit.to_string(), "start"].map(ToOwned::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let asked = ask_program(world, place, "sh", &words, |command| {
            command.args(["-c", &script]);
        })?;
        let said = asked.hear(world, LONG)?;
        if said.ended == Ended::Code(0) {
            let id = said.out.trim_end().to_owned();
            let up = || std::fs::read(dir(world, &id).join("out.log")).is_ok_and(|o| o == b"up\n");
            ensure!(arena::await_until(LONG, up), "with {limit} its output is lost");
            let killed = crate::desk::ask(world, place, &["kill", &id])?.hear(world, LONG)?;
            killed.expect(0)?;
            over(world, place, &id)?;
            continue;
        }
        failed += 1;
        nobody(world).context(format!("with {limit}"))?;
        no_cgroup(world).context(format!("with {limit}"))?;
        said.expect_one_line(125, "").context(format!("with {limit}"))?;
        let left: Vec<String> =
            run_ids(world).into_iter().filter(|id| !before.contains(id)).collect();
        ensure!(left.is_empty(), "with {limit} there is {left:?}");
    }
    ensure!(failed > 0, "every limit was enough: nothing was tried");
    all_clean(world)
}
