//! Completions in real shells, and man pages under real linters. What this
//! machine has not is skipped, and the closing lines say so.

#[path = "tools/bash.rs"]
mod bash;
#[path = "tools/fish.rs"]
mod fish;
#[path = "tools/kit.rs"]
mod kit;
#[path = "tools/pages.rs"]
mod pages;
#[path = "tools/zsh.rs"]
mod zsh;

use libtest_mimic::Arguments;

fn main() {
    let trials = [bash::trials(), zsh::trials(), fish::trials(), pages::trials()];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}
