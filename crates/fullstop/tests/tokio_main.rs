//! A program under `#[tokio::main]`, which has threads before its first line and calls
//! nothing of ours before it starts a run.

use fullstop::Runs;
use std::error::Error;
use std::time::{Duration, Instant};

/// What this program writes if it runs a second time, in the place of a keeper.
const MAIN: &str = "main has run";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{MAIN}");
    let name = std::env::args().next().unwrap_or_default();
    assert_ne!(name, "fullstop-guard", "a keeper runs the host's main");
    let dir = std::env::temp_dir().join(format!("fullstop-tokio-main-{}", std::process::id()));
    let runs = Runs::at(&dir)?;
    let run = runs.command("sh").args(["-c", "setsid sleep 60 & exec sleep 60"]).spawn().await?;
    let report = run.stop().await?;
    assert!(report.proof.is_some(), "{report:?}");
    let until = Instant::now() + Duration::from_mins(1);
    // A keeper whose run has ended may still be tidying.
    while std::fs::remove_dir_all(&dir).is_err() && dir.exists() && Instant::now() < until {}
    println!("test a_program_under_tokio_main_is_its_own_keeper ... ok");
    Ok(())
}
