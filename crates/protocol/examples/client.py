#!/usr/bin/env python3
"""A client of fullstop, written from docs/protocol.md alone. Python 3.9, Linux.
list | start [--pty] -- CMD… | follow ID | stop ID | attach ID (Ctrl-] leaves)"""
import base64, datetime, fcntl, json, os, random, socket, struct, subprocess, sys, termios, threading, time, tty

XDG = os.environ.get("XDG_STATE_HOME", "")
HOME = XDG if os.path.isabs(XDG) else os.path.expanduser("~/.local/state")
STATE = os.path.abspath(os.environ.get("FULLSTOP_DIR") or HOME + "/fullstop")
FULLSTOP = os.environ.get("FULLSTOP", "fullstop")
VERSION, OVER, F_OFD_GETLK = 2, ("ended", "released"), 36
TERMINAL = {"terminal": {"size": {"rows": 24, "cols": 80}, "fit": "latest"}}
PLAIN = {"opener": lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)}

def is_held(run):  # Whether keeper or guard lives; None, if the run is not listed.
    try:
        with open(f"{STATE}/live/{run}", "rb", **PLAIN) as lock:
            found = fcntl.fcntl(lock, F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
        return struct.unpack_from("h", found)[0] != fcntl.F_UNLCK
    except FileNotFoundError:
        return None

def read_record(run):  # How a run stands; words of our own stand for what no record tells.
    held = is_held(run)  # First: the lock is let go only once the last record is written.
    try:
        with open(f"{STATE}/runs/{run}/record.json", **PLAIN) as file:
            record = json.load(file)
        if record["state"] and record["version"] > VERSION:
            return {"state": "written by a later fullstop"}
    except FileNotFoundError:
        record = {"state": "unknown" if held is None else "being born"}
    except (OSError, ValueError, KeyError, TypeError):
        record = {"state": "damaged"}
    return {**record, "state": "lost"} if held is False and record["state"] not in OVER else record

def show(record, *before):
    words = [record["state"], record.get("reason"), record.get("step")]
    if "left_ms" in record:
        at = datetime.datetime.fromisoformat(record["at"].replace("Z", "+00:00")).timestamp()
        words.append(f"{max(0, at + record['left_ms'] / 1000 - time.time()):.1f} s left")
    print(*before, ", ".join(filter(None, words)), flush=True)

def journal():  # Which file it is, and its size: with each notice one of them changes.
    flags = os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK  # Its readers make it.
    with open(os.open(STATE + "/journal", flags, 0o600), "rb") as file:
        found = os.fstat(file.fileno())
        return found.st_dev, found.st_ino, found.st_size

def follow(run, order=None):  # Shows each state until the run is over, and then the claim.
    record, told = read_record(run), None
    generation = record.get("generation")
    if order and record["state"] not in OVER:
        ask(run, type=order, generation=generation)
    while True:
        seen, record = journal(), read_record(run)  # In this order: what comes later is told.
        generation = generation or record.get("generation")
        if record.get("generation", generation) != generation:
            return f"{run} was restarted"
        stands = [record.get(field) for field in ("state", "reason", "step")]
        if stands != told:
            show(record)
        if record["state"] in (*OVER, "unknown"):
            report = record.get("report") or {}
            print("claim:", report.get("proof"), json.dumps(report.get("kernel")))
            return 0 if record["state"] == "ended" and report.get("proof") else 120
        told, until = stands, time.monotonic() + 5
        while journal() == seen and time.monotonic() < until:
            time.sleep(0.25)

def is_process(pid, named):  # Whether it is the very process that a record names.
    with open(f"/proc/{pid}/stat") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
    inode = os.fstat(os.pidfd_open(pid)).st_ino if named["inode"] else None
    return (pid, ticks, inode) == (named["pid"], named["start_ticks"], named["inode"])

def ask(run, **request):  # The keeper that the record names, and nobody else.
    named, keeper = read_record(run).get("keeper"), socket.socket(socket.AF_UNIX)
    directory = os.open(f"{STATE}/runs/{run}", os.O_PATH | os.O_NOFOLLOW)
    keeper.settimeout(5)
    keeper.connect(f"/proc/self/fd/{directory}/control.sock")
    peer = struct.unpack("3i", keeper.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    if not named or not is_process(peer, named):
        sys.exit(f"pid {peer} listens there, which is not the keeper of {run}")
    lines = {"type": "hello", "protocol": VERSION, "program": "client.py"}, {"id": 1, **request}
    keeper.sendall("".join(json.dumps(line) + "\n" for line in lines).encode())
    heard = keeper.makefile("rb")
    for answer in map(json.loads, heard):
        if answer["type"] == "refused":
            sys.exit(f"refused: {answer['code']}: {answer['message']}")
        if answer.get("id") == 1:
            return keeper, heard
    sys.exit(f"the keeper of {run} hung up")

def attach(run):
    modes = termios.tcgetattr(0) if os.isatty(0) else None
    size = dict(zip(("cols", "rows"), os.get_terminal_size(0))) if modes else None
    keeper, heard, left = *ask(run, type="attach", size=size), threading.Event()
    keeper.settimeout(None)
    def type_in():
        while typed := os.read(0, 4096):
            if modes and b"\x1d" in typed:
                left.set()
                return keeper.shutdown(socket.SHUT_RDWR)
            keeper.sendall(b"b" + struct.pack(">I", len(typed)) + typed)
    threading.Thread(target=type_in, daemon=True).start()
    try:
        if modes:
            tty.setraw(0)
        while head := heard.read(5):
            kind, body = head[:1], heard.read(int.from_bytes(head[1:], "big"))
            if kind == b"e":
                return 0 if json.loads(body)["state"] in OVER else 120
            sys.stdout.buffer.write({b"s": body[8:], b"b": body}.get(kind, b""))
            sys.stdout.flush()
    finally:
        if modes:
            termios.tcsetattr(0, termios.TCSADRAIN, modes)
    return 0 if left.is_set() else follow(run)  # Its keeper was killed.

def text(data):
    plain = data.decode(errors="replace")
    return plain if plain.encode() == data else {"base64": base64.b64encode(data).decode()}

def start(*words):
    ticks = int((time.time() - 1767225600) * 32768)
    number, letters = ticks << 20 | random.getrandbits(20), "0123456789abcdefghjkmnpqrstvwxyz"
    launch = {"id": "".join(letters[number >> place & 31] for place in range(60, -1, -5)),
              "generation": 1, "placement": "background", "host": None, "state_dir": STATE}
    spec = {"version": VERSION, "cwd": text(os.getcwdb()), "stdin": "null",
            "argv": [text(os.fsencode(word)) for word in words[words.index("--") + 1 :]],
            "env": [text(b"=".join(variable)) for variable in os.environb.items()],
            "output": TERMINAL if words[0] == "--pty" else "log"}
    line, theirs = socket.socketpair()
    with subprocess.Popen(["fullstop-guard"], executable=FULLSTOP, stdin=theirs):
        theirs.close()
        line.sendall(json.dumps({"protocol": 2, "spec": spec, "launch": launch}).encode() + b"\n")
        answer = json.loads(line.makefile().readline() or '{"type": "nothing"}')
    print(answer["run"] if answer["type"] == "accepted" else answer)
    return answer.get("status")

def list_live():
    for run in sorted(os.listdir(STATE + "/live")):
        show(read_record(run), run)

COMMANDS = {"list": list_live, "start": start, "attach": attach, "follow": follow,
            "stop": lambda run: follow(run, "stop")}
try:
    sys.exit(COMMANDS.get("".join(sys.argv[1:2]), lambda *words: __doc__)(*sys.argv[2:]))
except (OSError, ValueError) as error:
    sys.exit(f"{error}")
