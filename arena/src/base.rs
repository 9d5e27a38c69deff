//! The one directory a test run makes on disk: copies of the programs under
//! test, where every user can execute them, and the mount point below which
//! each world mounts a scratch file system that vanishes with it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{Context, Outcome};

pub(crate) struct Base(PathBuf);

impl Base {
    /// Makes the directory and copies the programs into it. A checkout may lie
    /// in a home directory nobody else may enter, and a rebuild may replace a
    /// program in the middle of a test run: hence copies.
    pub(crate) fn create() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("fullstop-arena-{}", std::process::id()));
        // Only a leftover of a dead process can have our own id.
        let _ = fs::remove_dir_all(&path);
        let base = Self(path);
        for dir in [base.0.clone(), base.0.join("bin"), base.0.join("others"), base.0.join("cell")]
        {
            fs::create_dir(&dir).context(format!("cannot make {}", dir.display()))?;
            fs::set_permissions(&dir, Permissions::from_mode(0o755)).context("chmod")?;
        }
        copy(&program("FULLSTOP_BIN", "fullstop")?, &base.0.join("bin/fullstop"))?;
        copy(&program("ZOO_BIN", "zoo")?, &base.0.join("bin/zoo"))?;
        copy(
            &std::env::current_exe().context("own executable")?,
            &base.0.join("others/bystander"),
        )?;
        Ok(base)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program under test: named by the environment, or else built beside us
/// (test executables live in `deps`, one below).
fn program(variable: &str, name: &str) -> Outcome<PathBuf> {
    let path = if let Some(path) = std::env::var_os(variable) {
        PathBuf::from(path)
    } else {
        let exe = std::env::current_exe().context("own executable")?;
        exe.parent().and_then(Path::parent).context("own directory")?.join(name)
    };
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "{} is not there: build it (cargo build --release -p fullstop-cli -p fullstop-zoo) or set {variable}",
        path.display()
    )
    .into())
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).context(format!("cannot copy {}", from.display()))?;
    fs::set_permissions(to, Permissions::from_mode(0o755))
        .context(format!("chmod {}", to.display()))
}
