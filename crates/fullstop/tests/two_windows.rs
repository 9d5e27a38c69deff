//! The example of that name, to its end.

mod closed_world;

#[path = "../examples/two_windows.rs"]
mod example;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    // Its keepers, and its windows.
    let is_part =
        words[0].starts_with("fullstop-") || words.get(1).is_some_and(|it| it == "window");
    if is_part || closed_world::is_inside("two_windows")? { example::main() } else { Ok(()) }
}
