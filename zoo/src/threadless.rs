//! A place in which no thread can be made, as some sandboxes are.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::Life;
use crate::raw;
use crate::stage::Stage;
use crate::trouble::{Doing, Trouble};

/// Gives its argument to a shell that, with all it starts, can fork and make no thread.
pub fn threadless(stage: &Stage) -> Life {
    let script =
        stage.argument.as_ref().ok_or_else(|| Trouble::Usage("threadless SCRIPT".into()))?;
    raw::refuse_threads().doing("seccomp")?;
    Err(Command::new("sh").arg("-c").arg(script).exec()).doing("exec")
}
