"""Stands in for fathom: as an agent that does what it is told, and as coordinators.

Run as `fake_fathom.py agent ...` or `fake_fathom.py COMMAND SCENARIO ... --hosts PATH`. A scenario
prints what it saw, as JSON in lines. It imports only what Python itself has.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def be_agent() -> int:
    """Does what each line says, and ends with stdin as a real agent does."""
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("do"):
            case "echo":
                say(message)
            case "args":
                say({"args": sys.argv[1:], "pid": os.getpid(), "sid": os.getsid(0)})
            case "big":
                say({"text": "x" * message["bytes"]})
            case "exit":
                sys.stderr.write(message["stderr"])
                sys.stderr.flush()
                os._exit(message["status"])
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "raw":
                sys.stdout.write(message["text"] + "\n")
                sys.stdout.flush()
            case "deaf":
                say({"deaf": True, "pid": os.getpid()})
                time.sleep(120)
            case "hang":
                say({"hangs": True})
                while True:
                    time.sleep(120)
            case "note":
                with Path(message["file"]).open("a") as file:
                    file.write(message["text"] + "\n")
    return 0


class Router:
    """The other end of the router's socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.hello = self.next()
        self.hosts: list[str] = self.hello["hosts"]

    def next(self) -> Message:
        line = self.file.readline()
        if not line:
            raise EOFError
        message: Message = json.loads(line)
        return message

    def say(self, host: str, **line: object) -> None:
        self.socket.sendall(json.dumps({"host": host, "line": line}).encode() + b"\n")

    def line_of(self, host: str) -> Message:
        """The next line of this host's. Every other message is a surprise."""
        message = self.next()
        assert message["host"] == host, message
        line: Message = message["line"]
        return line

    def gone_of(self, host: str) -> str:
        message = self.next()
        assert message["host"] == host and "gone" in message, str(message)[:300]
        why: str = message["gone"]
        return why


def scene_echo(router: Router) -> int:
    """Each host says what it hears, in order, with every kind of text."""
    say(router.hello)
    for i in range(50):
        for host in router.hosts:
            router.say(host, do="echo", i=i, text='\u2028 ü \x00 "', unix_ns=1795705031253876244)
    seen: dict[str, list[int]] = {host: [] for host in router.hosts}
    while any(len(numbers) < 50 for numbers in seen.values()):
        message = router.next()
        line = message["line"]
        assert line["text"] == '\u2028 ü \x00 "' and line["unix_ns"] == 1795705031253876244
        seen[message["host"]].append(line["i"])
    say(seen)
    return 0


def scene_args(router: Router) -> int:
    for host in router.hosts:
        router.say(host, do="args")
    for _ in router.hosts:
        say(router.next())
    say({"argv": sys.argv[1:], "pgid": os.getpgid(0)})
    return 7


def scene_big(router: Router) -> int:
    size = 24 << 20
    for host in router.hosts:
        router.say(host, do="big", bytes=size)
    for _ in router.hosts:
        message = router.next()
        say({"host": message["host"], "is_whole": message["line"]["text"] == "x" * size})
    return 0


def scene_ends(router: Router) -> int:
    """Each way in which an agent can end, one after the other; the last host goes on."""
    a, b, c, d = router.hosts
    router.say(
        a, do="exit", status=3, stderr="\x1b[31mbad\x1b[0m\x07\nno\tdisk " + "y" * 2000 + "END\n"
    )
    say(router.gone_of(a))
    router.say(b, do="die")
    say(router.gone_of(b))
    router.say(c, do="raw", text="Welcome to host c")
    say(router.gone_of(c))
    router.say(a, do="echo")  # Is dropped: it is gone.
    router.say(d, do="echo", still=True)
    say(router.line_of(d))
    return 0


def scene_gone(router: Router) -> int:
    for _ in router.hosts:
        say(router.next()["gone"])  # The hosts are in any order.
    return 0


def scene_ready_then_gone(router: Router) -> int:
    router.say(router.hosts[0], do="args")
    router.line_of(router.hosts[0])
    say("ready")
    say(router.gone_of(router.hosts[0]))
    return 0


def scene_slow(router: Router) -> int:
    """One host does not read. The other one is not kept waiting, and in the end one is gone."""
    a, b = router.hosts
    router.say(a, do="deaf")
    deaf = router.line_of(a)["pid"]
    answers = 0
    while True:
        # More than a pipe holds, so that the queue fills.
        router.say(a, do="echo", text="z" * 1000)
        router.say(b, do="echo", i=answers)
        message = router.next()
        if "gone" in message:
            assert message["host"] == a, message
            say({"gone": message["gone"], "answers": answers})
            os.kill(deaf, signal.SIGKILL)
            break
        assert message["host"] == b and message["line"]["i"] == answers
        answers += 1
    return 0


def scene_last_words(router: Router) -> int:
    """What fathom says last reaches the agents, although it ends at once."""
    for host in router.hosts:
        for i in range(200):
            router.say(host, do="note", file=os.environ["NOTES"] + host, text=str(i))
    return 0


def scene_hang(router: Router) -> int:
    router.say(router.hosts[0], do="hang")
    say(router.next())
    return 5


def scene_killed(router: Router) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def scene_nonsense(router: Router) -> int:
    router.socket.sendall(b"[1,2]\n")
    try:
        router.next()
    except (EOFError, ConnectionError):
        say("closed")
    return 6


def scene_signals(router: Router) -> int:
    """Counts the signals until none has come for a while."""
    caught: list[int] = []
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, lambda number, _: caught.append(number))
    say("ready")
    while not caught:
        time.sleep(0.05)
    time.sleep(2)
    say(caught)
    return 130


def scene_wait(router: Router) -> int:
    """Until the router closes the connection."""
    for host in router.hosts:
        router.say(host, do="args")
    for _ in router.hosts:
        say(router.next())
    try:
        while True:
            router.next()
    except (EOFError, ConnectionError):
        return 0


def scene_experiment(router: Router) -> int:
    """What fathom does with real agents: agree, start all at once, and hear them to their end."""
    words = json.loads(os.environ["EXPERIMENT"])
    heard: queue.Queue[Message] = queue.Queue()

    def hear() -> None:
        try:
            while True:
                heard.put(router.next())
        except (EOFError, OSError):
            heard.put({})

    lock = threading.Lock()

    def tell(host: str, **line: object) -> None:
        with lock:
            router.say(host, **line)

    alive = set(router.hosts)

    def renew() -> None:
        while True:
            time.sleep(1)
            for host in list(alive):
                try:
                    tell(host, message="renew")
                except OSError:
                    return

    threading.Thread(target=hear, daemon=True).start()
    threading.Thread(target=renew, daemon=True).start()
    for host in router.hosts:
        tell(host, message="hello", protocol=1, fathom_version="0.1.0", points=1)
        tell(host, message="prepare", words=words)
    prepared: set[str] = set()
    measuring: set[str] = set()
    has_started = False
    while alive:
        message = heard.get(timeout=300)
        if not message:
            return 9
        host = message["host"]
        if "gone" in message:
            say({"host": host, "gone": message["gone"]})
            alive.discard(host)
            if "Dask" in message["gone"]:  # A host was lost: that is enough for this test.
                for one in sorted(alive):
                    tell(one, message="stop")
        else:
            line = message["line"]
            kind = line.get("message") or line.get("line")
            if kind in ("hello", "refused", "prepared", "trial", "ended", "conclusion", "began"):
                say({"host": host, "kind": kind, "why": line.get("why")})
            if kind == "prepared":
                prepared.add(host)
            if kind == "progress" and host not in measuring:
                measuring.add(host)
                say({"host": host, "kind": "progress"})
            if kind == "ended":
                tell(host, message="stop")
        if not has_started and prepared >= alive:
            has_started = True
            at = time.time_ns() + 500_000_000
            for one in sorted(alive):
                tell(one, message="start", at_unix_ns=at)
    return 0


def main() -> int:
    if sys.argv[1] == "agent":
        return be_agent()
    if sys.argv[2] == "refuse":
        sys.stderr.write("error: no such target\n")
        return 2
    path = sys.argv[sys.argv.index("--hosts") + 1]
    scene: Callable[[Router], int] = globals()[f"scene_{sys.argv[2]}"]
    return scene(Router(path))


if __name__ == "__main__":
    sys.exit(main())
