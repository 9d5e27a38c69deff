//! Every contender stops the same hostile trees; what lives on is counted.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fullstop_bench::plan::{Contender, Plan};
use fullstop_bench::results::{Failure, Results, Survivors};

use crate::Outcome;
use crate::enclose::in_namespace;
use crate::hunt::{Catch, Job};

/// What agents and their tools really do: members of the zoo.
const ANIMALS: [&str; 8] = [
    "plain",
    "own-group",
    "own-session",
    "daemon",
    "daemon-bare-env",
    "ignore-term",
    "tree-on-term",
    "storm",
];
/// Most of the time is spent waiting for those that never return.
const HUNTERS: usize = 4;

pub fn measure(plan: &Plan, found: &mut Results) -> Outcome<()> {
    let Some(zoo) = &plan.zoo else {
        return Ok(());
    };
    let hunts: Vec<(&Contender, &str)> = plan
        .contenders
        .iter()
        .filter(|contender| contender.takes_part() && !contender.prefix.is_empty())
        .filter(|contender| !contender.is_engine())
        .flat_map(|contender| ANIMALS.map(|animal| (contender, animal)))
        .collect();
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..HUNTERS {
            scope.spawn(|| {
                while let Some(&(contender, animal)) =
                    hunts.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let catch = one(plan, zoo, contender, animal).map_err(|e| e.to_string());
                    if let Ok(mut caught) = caught.lock() {
                        caught.push((contender, animal, catch));
                    }
                }
            });
        }
    });
    let caught = caught.into_inner().map_err(|_| "a hunter panicked")?;
    for &(contender, animal) in &hunts {
        for (_, _, catch) in
            caught.iter().filter(|(c, a, _)| c.name == contender.name && *a == animal)
        {
            match catch {
                Ok(catch) => found.survivors.push(Survivors {
                    contender: contender.name.clone(),
                    animal: animal.to_owned(),
                    before: catch.before,
                    survivors: catch.survivors,
                    returned: catch.returned,
                }),
                Err(why) => found.failures.push(Failure {
                    contender: contender.name.clone(),
                    part: format!("survivors of {animal}"),
                    why: why.clone(),
                }),
            }
        }
    }
    Ok(())
}

fn one(plan: &Plan, zoo: &Path, contender: &Contender, animal: &str) -> Outcome<Catch> {
    let dir = fresh_dir(&plan.scratch)?;
    let job = Job {
        prefix: contender.prefix.clone(),
        env: contender.env.clone(),
        zoo: zoo.to_owned(),
        animal: animal.to_owned(),
        dir: dir.clone(),
    };
    let file = dir.join("job.json");
    std::fs::write(&file, serde_json::to_vec(&job)?)?;
    let output = in_namespace(&["init"], &["hunt", &file.display().to_string()]).output()?;
    let _ = std::fs::remove_dir_all(&dir);
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Of its own for each hunt, writable for everybody, as the zoo asks.
fn fresh_dir(scratch: &Path) -> Outcome<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let dir = scratch.join(format!("hunt-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir(&dir)?;
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777))?;
    Ok(dir)
}
