//! What `--help` says.

pub const MAIN: &str = "\
fullstop runs a command so that stopping it stops everything it started,
and says \"stopped\" only when the kernel agrees.

Usage:
  fullstop run [options] [--] COMMAND [ARGS…]
  fullstop demo                  a hostile little tree, shown, stopped, proven dead
  fullstop --version

Try `fullstop run --help`.
";

pub const RUN: &str = "\
Usage: fullstop run [options] [--] COMMAND [ARGS…]

Behaves like COMMAND: its stdio, its terminal, its exit status. INT, TERM, HUP
or QUIT sent to it stop the whole tree; when it returns, nothing is left.

Stopping:
  --ladder L           the steps of a stop (default: term@leader:3s,term@tree:2s,kill)
                       step: SIGNAL, close-stdin or input:\"TEXT\", with @leader, @group
                       or @tree, and :PATIENCE; the last step is always kill
  --grace D            the usual ladder, scaled to this total (0: kill at once)
  --agent NAME         the ladder of a known agent; auto (default) goes by COMMAND,
                       none by nothing
  --timeout D          stop after this time
  --on-exit WHAT       when COMMAND exits and others live: stop (default), wait, release
  --on-host-exit WHAT  when whoever started this dies: stop or ignore
                       (default: stop, but ignore on a terminal and under nohup)
  --cage KIND          auto (default), cgroup, or tree

Environment:
  --cwd DIR            run COMMAND there
  --env K=V            set a variable
  --unset-env K        remove one
  --clear-env          start from an empty environment

Telling:
  --name N             a name for the run
  --report FILE        write a JSON report there at the end (- is stdout)
  -q, --quiet          say nothing but errors
  -v, --verbose        say each step

Durations: 500ms, 3s, 1m30s, 2h. A bare number counts seconds.

Exit status: COMMAND's own; if it died of a signal, so does this (137 for KILL).
  120 stuck: something could not be killed (it is named)   124 timed out
  125 fullstop failed   126 cannot execute COMMAND   127 COMMAND not found
";
