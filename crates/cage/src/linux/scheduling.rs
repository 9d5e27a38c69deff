//! Getting a turn on a busy machine: a storm of processes must not keep its keeper
//! from ending it.

use super::groups::own_session;
use rustix::process::getpid;

/// How long a turn of ours need be. See sched(7): whoever asks for a short one gets it
/// sooner.
const SHORT: u64 = 100_000;

/// Asks for short turns, which anybody may (Linux 6.12). To be called in a process that
/// mostly sleeps: it is let in soon after it wakes, however many others want to run.
pub fn ask_for_short_turns() {
    // SAFETY: no pointer is passed. Whoever stands higher is not to be brought down.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return;
    }
    // SAFETY: no memory is touched; an error reads as a nice value, and is harmless.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let wish = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or_default(),
        sched_policy: libc::SCHED_OTHER.cast_unsigned(),
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SHORT,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: `wish` is a whole sched_attr, and is only read.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) };
}

/// The steps of a stop race with forks: whoever may, goes first. Others are told no,
/// and race all the same.
pub fn raise_priority() {
    let _ = rustix::process::setpriority_process(None, -20);
    ask_for_short_turns();
}

/// Where sessions are scheduled as groups, it is the group's turn that counts; in
/// somebody else's session it is not ours to take. Half a millisecond of work.
pub fn raise_session() {
    if own_session() == getpid().as_raw_pid() {
        let _ = std::fs::write("/proc/self/autogroup", "-20");
    }
}
