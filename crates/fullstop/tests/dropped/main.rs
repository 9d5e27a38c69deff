//! What becomes of runs when futures and handles are dropped: whole orders or none, and nothing
//! that nobody knows of. Nothing here is polled by tokio: each future is polled by hand, on a
//! thread without a runtime.

mod handles;
mod kit;
mod orders;
mod polls;
mod starts;

use fullstop::Runs;
use std::error::Error;

type Check = fn(&Runs) -> Result<(), Box<dyn Error>>;

const CHECKS: [(&str, Check); 10] = [
    ("a_start_that_is_dropped_leaves_nothing_unknown", starts::leave_nothing_unknown),
    ("a_command_has_the_signal_mask_of_its_caller", starts::keep_the_mask),
    ("an_order_is_given_by_its_first_poll_or_not_at_all", orders::one_run),
    ("orders_to_many_are_all_given_or_none", orders::many_runs),
    ("orders_that_meet_are_one_stop_in_the_shortest_time", orders::that_meet),
    ("a_clock_beside_many_orders_needs_no_runtime", orders::clock),
    ("a_wait_that_is_dropped_changes_nothing", orders::waits),
    ("the_last_handle_asks_for_the_own_ladder", handles::last_handle),
    ("a_host_that_dies_is_not_waited_for", handles::dead_host),
    ("no_poll_of_an_order_reads_a_file", polls::read_nothing),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let first = words.next();
    if first.as_deref() == Some(handles::HOST) {
        return handles::be_host(words);
    }
    let dir = std::env::temp_dir().join(format!("fullstop-dropped-{}", std::process::id()));
    let runs = Runs::at(&dir)?;
    for (name, check) in CHECKS {
        let is_meant = |only: &String| only.starts_with('-') || name.contains(only.as_str());
        if !first.as_ref().is_none_or(is_meant) {
            continue;
        }
        let checked = check(&runs);
        kit::end_all(&runs);
        checked.map_err(|error| format!("{name}: {error}"))?;
        println!("test {name} ... ok");
    }
    // One that was still on its way when its check looked.
    kit::until("nothing of all that is left", || !kit::any_sleeper_runs());
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
