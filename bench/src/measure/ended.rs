//! A state directory with many ended runs, as months of use leave it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use fullstop_core::id::Id;

use crate::Outcome;
use crate::child::quiet_command;

/// Between the births of two of them.
const APART_MS: u64 = 1000;

/// Runs `true` once, for real, and copies what it left until there are `count`.
pub fn fill(fullstop: &Path, dir: &Path, count: usize) -> Outcome<()> {
    let words = [fullstop.display().to_string(), "run".to_owned(), "true".to_owned()];
    let env = [("FULLSTOP_DIR".to_owned(), dir.display().to_string())];
    let status = quiet_command(&words, &env)?.status()?;
    if !status.success() {
        return Err(format!("`fullstop run true` ended with {status}").into());
    }
    let runs = dir.join("runs");
    let model = Model::read(&runs)?;
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    // The model is one of them.
    for number in 1..u64::try_from(count)? {
        model.copy(&runs, &Id::new(now - number * APART_MS, number))?;
    }
    // The disk shall not be busy with this while something is timed.
    rustix::fs::syncfs(File::open(dir)?)?;
    Ok(())
}

struct Model {
    id: String,
    files: Vec<(String, String)>,
}

impl Model {
    fn read(runs: &Path) -> Outcome<Self> {
        let run = std::fs::read_dir(runs)?.next().ok_or("`fullstop run true` left no record")??;
        let id = run.file_name().into_string().map_err(|_| "a run's id is not UTF-8")?;
        let mut files = Vec::new();
        for file in std::fs::read_dir(run.path())? {
            let file = file?;
            let name = file.file_name().into_string().map_err(|_| "a file's name is not UTF-8")?;
            files.push((name, std::fs::read_to_string(file.path())?));
        }
        Ok(Self { id, files })
    }

    fn copy(&self, runs: &Path, id: &Id) -> Outcome<()> {
        let dir = runs.join(id.as_str());
        DirBuilder::new().mode(0o700).create(&dir)?;
        for (name, text) in &self.files {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(name))?;
            file.write_all(text.replace(&self.id, id.as_str()).as_bytes())?;
        }
        Ok(())
    }
}
