//! Ids sort by birth, also those of runs that begin within the same milliseconds: of the
//! runs of one name that are over, the last is meant.

use arena::{Outcome, Registry, World, ensure};

use super::desk::{ask_program, run_ids, tell};
use crate::kit::{ANYWHERE, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    add(registry, "ids::logs-and-rm", &ANYWHERE, &[], logs_and_rm);
    add(registry, "ids::restart", &ANYWHERE, &[], restart);
}

/// Of ids that sorted by chance, a dozen in so many would be the wrong ones.
const TRIES: usize = 40;

const IN_FRONT: &str = "\"$0\" run --log --name \"$1\" echo $number";
const BEHIND: &str = "\"$0\" wait $(\"$0\" start --name \"$1\" echo $number)";

/// Two runs of one name, the second begun as soon as the first is over. Each writes its
/// number.
fn two_of(world: &mut World, place: Place, run: &str, name: &str) -> Outcome {
    let program = text(world.fullstop());
    let script = &format!("for number in first second; do {run}; done");
    let asked = ask_program(world, place, "sh", &[name], |command| {
        command.args(["-c", script, &program, name]);
    })?;
    asked.hear(world, SOON)?.expect(0)
}

fn logs_and_rm(world: &mut World, place: Place) -> Outcome {
    for number in 0..TRIES {
        let name = format!("same-{number}");
        two_of(world, place, IN_FRONT, &name)?;
        let logs = tell(world, place, &["logs", &name])?;
        ensure!(logs == "second\n", "{name}: logs shows {logs:?}");
        tell(world, place, &["rm", &name])?;
        let logs = tell(world, place, &["logs", &name])?;
        ensure!(logs == "first\n", "{name}: rm took the wrong one, and left {logs:?}");
    }
    let ids = run_ids(world);
    ensure!(ids.len() == TRIES, "{} runs are left", ids.len());
    Ok(())
}

fn restart(world: &mut World, place: Place) -> Outcome {
    for number in 0..TRIES {
        let name = format!("same-{number}");
        two_of(world, place, BEHIND, &name)?;
        let told = tell(world, place, &["restart", &name])?;
        let id = told.split(' ').next().unwrap_or_default().to_owned();
        tell(world, place, &["wait", &id])?;
        let logs = tell(world, place, &["logs", &id])?;
        ensure!(logs == "second\nsecond\n", "{name}: restart started the one that wrote {logs:?}");
    }
    Ok(())
}
