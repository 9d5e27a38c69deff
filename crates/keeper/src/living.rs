//! Those who are still there when a run is over, named for people.

use fullstop_core::cage::Member;
use fullstop_protocol::RunState;

/// Who could not be killed, or was let go, a line each; nothing of a run that has
/// ended. `named` may be the first of `count` only.
pub fn name_living<'a>(
    state: &RunState,
    count: usize,
    named: impl IntoIterator<Item = &'a Member>,
) -> Vec<String> {
    let (state, what) = match state {
        RunState::Stuck { .. } => ("stuck", "still alive"),
        RunState::Released if count > 0 => ("released, not stopped", "released"),
        _ => return Vec::new(),
    };
    if count == 0 {
        return vec![format!("{state}: somebody is {what} who cannot be seen from here")];
    }
    let processes = if count == 1 { "process" } else { "processes" };
    let mut lines = vec![format!("{state}: {count} {processes} {what}")];
    for Member { pid, state, wchan, command, .. } in named {
        let wchan = wchan.as_deref().unwrap_or("?");
        lines.push(format!("  pid {pid} state {state} in {wchan}: {command}"));
    }
    let more = count.saturating_sub(lines.len() - 1);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    lines
}
