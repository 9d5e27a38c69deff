"""psutil in the two shapes the bench knows.

`peer.py run CMD…` stands in front of a command and stops it, on SIGTERM, by the
recipe of psutil's manual: children, recursively, terminated, waited for, killed.
`peer.py serve` spawns the tab-separated command lines it reads and answers each
with two readings of the monotonic clock.
"""

import signal
import sys
import time

import psutil

GRACE = 5


def stop(leader):
    members = leader.children(recursive=True) + [leader]
    for member in members:
        try:
            member.terminate()
        except psutil.NoSuchProcess:
            pass
    _, alive = psutil.wait_procs(members, timeout=GRACE)
    for member in alive:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(alive, timeout=GRACE)


def run(command):
    leader = None

    def asked(*_):
        if leader is not None:
            stop(leader)
        sys.exit(1)

    signal.signal(signal.SIGTERM, asked)
    leader = psutil.Popen(command)
    sys.exit(leader.wait())


def serve():
    for line in sys.stdin:
        command = line.rstrip("\n").split("\t")
        start = time.monotonic_ns()
        psutil.Popen(command).wait()
        end = time.monotonic_ns()
        print(start, end, flush=True)


if sys.argv[1:2] == ["run"]:
    run(sys.argv[2:])
else:
    serve()
