//! Files of the repository that are written from the types.

use serde::Serialize;
use std::path::{Path, PathBuf};

pub fn schema_of(message: &str) -> PathBuf {
    here().join(format!("../../docs/schema/{message}.json"))
}

pub fn vectors_of(message: &str) -> PathBuf {
    here().join(format!("vectors/{message}.json"))
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The file, unless it holds this value. With `FULLSTOP_BLESS=1` it does so afterwards.
pub fn stale_file(file: PathBuf, value: &impl Serialize) -> Option<PathBuf> {
    let text = serde_json::to_string_pretty(value).expect("it can be written") + "\n";
    if std::env::var_os("FULLSTOP_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("it can be made");
        std::fs::write(&file, &text).expect("the file can be written");
    }
    let is_current = std::fs::read_to_string(&file).is_ok_and(|found| found == text);
    (!is_current).then_some(file)
}
