//! The examples that are one program each, to their ends.

mod closed_world;

#[path = "../examples/agent_manager.rs"]
mod agent_manager;
#[path = "../examples/exec_tool.rs"]
mod exec_tool;
#[path = "../examples/plan_on_ptys.rs"]
mod plan_on_ptys;

use std::error::Error;

type Example = fn() -> Result<(), Box<dyn Error>>;

const EXAMPLES: [(&str, Example); 3] = [
    ("agent_manager", agent_manager::main),
    ("exec_tool", exec_tool::main),
    ("plan_on_ptys", plan_on_ptys::main),
];

fn main() -> Result<(), Box<dyn Error>> {
    // Each ends only what it has started, and can be played by a plain user where that stands.
    if !rustix::process::geteuid().is_root() {
        return EXAMPLES.iter().try_for_each(|(_, example)| example());
    }
    for (name, example) in EXAMPLES {
        if closed_world::is_inside(name)? {
            return example();
        }
    }
    Ok(())
}
