//! Promise 9: nothing of our own is left behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::records::expect_finished;
use crate::{Context, Outcome, World, ensure};

/// No zombie, no cgroup and no file is left but those a member makes.
pub fn nothing_left(world: &World, members_files: &[&str]) -> Outcome {
    world.expect_no_zombies()?;
    if let Some(cgroup) = world.cgroup() {
        let left = cgroup.leftovers();
        ensure!(left.is_empty(), "not clean: cgroups left behind: {}", left.join(", "));
    }
    only(&world.dir(), members_files)?;
    only(&world.out(), &["report.json", "stderr"])?;
    only(&world.home(), &[])?;
    expect_finished(world)
}

fn only(dir: &Path, known: &[&str]) -> Outcome {
    for entry in fs::read_dir(dir).context(dir.display())?.flatten() {
        let name = entry.file_name();
        let expected = known.iter().any(|known| name == *known);
        ensure!(expected, "not clean: {} was left in {}", name.to_string_lossy(), dir.display());
    }
    Ok(())
}

/// What the member `setuid-root` needs: a copy of the zoo that makes root of
/// whoever starts it. It exists only in this world's own file system.
pub fn put_setuid_copy(world: &World) -> Outcome {
    let copy = world.dir().join("zoo-suid");
    fs::copy(world.zoo(), &copy).context("copying the zoo")?;
    fs::set_permissions(&copy, Permissions::from_mode(0o4755)).context("setuid bit")
}
