//! The example of that name, to its end. It kills guards and keepers, so that it is played in a
//! pid namespace of its own; where none can be made, it is not.

use std::error::Error;
use std::process::Command;

#[path = "../examples/two_windows.rs"]
mod example;

/// Says that the namespace is made.
const INSIDE: &str = "FULLSTOP_TEST_INSIDE";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let is_part =
        words[0].starts_with("fullstop-") || words.get(1).is_some_and(|it| it == "window");
    if is_part || std::env::var_os(INSIDE).is_some() {
        return example::main();
    }
    if !rustix::process::geteuid().is_root() {
        println!("test two_windows ... ignored: only root makes a pid namespace");
        return Ok(());
    }
    // A shell stays in front, and reaps whoever is left to it.
    let played = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", "--"])
        .args(["sh", "-c", "\"$0\"; exit $?"])
        .arg(std::env::current_exe()?)
        .env(INSIDE, "yes")
        .status()?;
    assert!(played.success(), "{played}");
    println!("test two_windows ... ok");
    Ok(())
}
